// ir-to-ptx FILE.ll [FILE.ptx]: the compiler as a program; `-` or nothing is standard input and output.
#include <fstream>
#include <iostream>
#include <sstream>

#include "compile.h"

int main(int count, char **words) {
    try {
        std::stringstream text;
        if (count > 1 && std::string(words[1]) != "-") {
            std::ifstream file(words[1]);
            if (!file) throw std::runtime_error(std::string("cannot read ") + words[1]);
            text << file.rdbuf();
        } else {
            text << std::cin.rdbuf();
        }
        const std::string ptx = compiler::compile(text.str());
        if (count > 2 && std::string(words[2]) != "-") {
            std::ofstream file(words[2]);
            file << ptx;
            if (!file.flush()) throw std::runtime_error(std::string("cannot write ") + words[2]);
        } else {
            std::cout << ptx;
        }
        return 0;
    } catch (const std::exception &error) {
        std::cerr << "error: " << error.what() << '\n';
        return 1;
    }
}
