// One way to read a command line: a table of options, of which the help and the errors are made. The runners, the
// simulator's tools and the fuzzer include it. getopt_long reads; `--name value`, `--name=value` and unambiguous
// abbreviations are the same to it.
#pragma once

#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace command_line {

struct Option {
    std::string name;      // without the two hyphens
    std::string argument;  // what the help calls its value; empty: it takes none
    std::string help;
    std::string otherwise;  // what counts where it is not given, for the help; empty: the help does not say
    // Stores the value; throws std::invalid_argument with what is expected instead, e.g. "bf16 or fp16".
    std::function<void(const std::string &)> store;
};

template <class T>
T parse_number(const std::string &text, T least, T most) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    // NaN is in no range.
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
    const auto shown = [](T number) {
        char digits[32];
        return std::string(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    };
    std::string wanted = std::is_integral_v<T> ? "a whole number" : "a number";
    if (std::is_integral_v<T> || most < std::numeric_limits<T>::max())
        wanted.append(" from ").append(shown(least)).append(" to ").append(shown(most));
    else
        wanted.append(", at least ").append(shown(least));
    throw std::invalid_argument(wanted);
}

inline std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

// An option without a value.
inline Option flag(std::string name, bool &target, std::string help) {
    return {std::move(name), "", std::move(help), "", [&target](const std::string &) { target = true; }};
}

// Each of these has the target's value for its default.
template <class T>
Option number(std::string name, std::string argument, T &target, std::string help, T least,
              T most = std::numeric_limits<T>::max()) {
    char digits[32];
    const std::string otherwise(digits, std::to_chars(digits, digits + sizeof digits, target).ptr);
    return {std::move(name), std::move(argument), std::move(help), otherwise,
            [=, &target](const std::string &text) { target = parse_number<T>(text, least, most); }};
}

// "1,2,4"
template <class T>
Option numbers(std::string name, std::string argument, std::vector<T> &target, std::string help, T least,
               T most = std::numeric_limits<T>::max()) {
    std::string otherwise;
    for (const T value : target) otherwise.append(otherwise.empty() ? "" : ",").append(std::to_string(value));
    return {std::move(name), std::move(argument), std::move(help), otherwise, [=, &target](const std::string &text) {
                std::vector<T> values;
                try {
                    for (const std::string &part : split(text)) values.push_back(parse_number<T>(part, least, most));
                } catch (const std::invalid_argument &wanted) {
                    throw std::invalid_argument(std::string(wanted.what()) + ", or several with commas between");
                }
                target = std::move(values);
            }};
}

inline Option text(std::string name, std::string argument, std::string &target, std::string help) {
    return {std::move(name), std::move(argument), std::move(help), target, [&target](const std::string &value) {
                if (value.empty()) throw std::invalid_argument("something that is not empty");
                target = value;
            }};
}

// One of a few words.
template <class T>
Option choice(std::string name, std::string argument, T &target, std::string help,
              std::vector<std::pair<std::string, T>> words) {
    std::string otherwise, wanted;
    for (size_t i = 0; i < words.size(); ++i) {
        if (words[i].second == target) otherwise = words[i].first;
        wanted += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i].first;
    }
    help = help.empty() ? wanted : wanted + ": " + help;
    return {std::move(name), std::move(argument), std::move(help), otherwise,
            [words = std::move(words), wanted, &target](const std::string &value) {
                for (const auto &[word, meaning] : words)
                    if (word == value) return void(target = meaning);
                throw std::invalid_argument(wanted);
            }};
}

struct Program {
    std::string usage;    // what stands behind the program's name
    std::string about;    // lines before the options
    std::string after{};  // lines behind them
    int wrong_usage = 2;
    bool stops_at_operand = false;  // what stands behind the first operand is not ours to read
    bool operands = false;          // there may be words that are no options
};

class CommandLine {
  public:
    CommandLine(std::string program, Program description, std::vector<Option> options)
        : program_(std::move(program)), about_(std::move(description)), options_(std::move(options)) {}

    // Says what is wrong and ends the process.
    [[noreturn]] void stop(const std::string &message) const {
        std::fprintf(stderr, "%s: %s (--help lists the options)\n", program_.c_str(), message.c_str());
        std::exit(about_.wrong_usage);
    }

    std::string help() const {
        std::string text = "usage: " + program_ + " " + about_.usage + "\n" + about_.about + "\n";
        const auto line = [&](const std::string &left, const std::string &right) {
            text += "  " + left + std::string(left.size() < 21 ? 21 - left.size() : 2, ' ') + right + "\n";
        };
        for (const Option &option : options_) {
            std::string left = "--" + option.name, right = option.help;
            if (!option.argument.empty()) left.append(" ").append(option.argument);
            if (!option.otherwise.empty()) right.append(" (").append(option.otherwise).append(")");
            line(left, right);
        }
        line("--help", "this text");
        return text + (about_.after.empty() ? "" : "\n" + about_.after);
    }

    // Stores what is given, in order; returns the operands. --help prints the help and ends the process, with status 0;
    // a mistake ends it with the program's status for wrong usage.
    std::vector<std::string> parse(int argc, char **argv) const {
        std::vector<::option> known;
        // Values of their own: getopt_long finds no ambiguity between options that have all the same.
        for (const Option &option : options_) {
            const int needs = option.argument.empty() ? no_argument : required_argument;
            known.push_back({option.name.c_str(), needs, nullptr, kFirst + static_cast<int>(known.size())});
        }
        const int help_option = kFirst + static_cast<int>(known.size());
        known.push_back({"help", no_argument, nullptr, help_option});
        known.push_back({});
        optind = 0;  // glibc: from the start, also the second time
        opterr = 0;
        const char *letters = about_.stops_at_operand ? "+:h" : ":h";
        for (int found; (found = getopt_long(argc, argv, letters, known.data(), nullptr)) != -1;) {
            if (found == '?' || found == ':') {
                const bool is_letter = optopt > 0 && optopt < kFirst;
                refuse(is_letter ? std::string{'-', static_cast<char>(optopt)} : argv[optind - 1], found == ':');
            }
            if (found == 'h' || found == help_option) {
                std::fputs(help().c_str(), stdout);
                std::exit(0);
            }
            const Option &option = options_[found - kFirst];
            const std::string value = optarg ? optarg : "";
            try {
                option.store(value);
            } catch (const std::invalid_argument &wanted) {
                std::string told = "--";
                told.append(option.name).append(" ").append(value.empty() ? "''" : value);
                stop(told.append(": expected ").append(wanted.what()));
            }
        }
        if (optind < argc && !about_.operands) stop("unexpected argument '" + std::string(argv[optind]) + "'");
        return {argv + optind, argv + argc};
    }

  private:
    static constexpr int kFirst = 256;  // of getopt_long's values that are no letters

    [[noreturn]] void refuse(const std::string &word, bool lacks_value) const {
        const std::string given = word.substr(0, word.find('='));
        const std::string wanted = given.rfind("--", 0) == 0 ? given.substr(2) : "";
        std::vector<const Option *> meant;
        for (const Option &option : options_) {
            if (option.name == wanted) {
                meant = {&option};
                break;
            }
            if (!wanted.empty() && option.name.rfind(wanted, 0) == 0) meant.push_back(&option);
        }
        if (meant.size() > 1) {
            std::string names;
            for (const Option *option : meant) names += (names.empty() ? "--" : ", --") + option->name;
            stop("option " + given + " may mean " + names);
        }
        if (meant.empty()) stop("unknown option " + given);
        if (lacks_value) stop("option --" + meant[0]->name + " wants a value, " + meant[0]->argument);
        stop("option --" + meant[0]->name + " takes no value: " + word);
    }

    std::string program_;
    Program about_;
    std::vector<Option> options_;
};

}  // namespace command_line
