// Copies, fills, CUDA arrays and textures.
#include "cases.h"

namespace {

CASE(copies) {
    new_context();
    std::vector<int> values(300), back(300);
    for (int i = 0; i < 300; ++i) values[i] = i * i;
    CUdeviceptr first = upload(values), second;
    OK(cuMemAlloc(&second, 1200));
    OK(cuMemcpyDtoD(second, first, 1200));
    OK(cuMemcpyDtoDAsync(second, first, 600, nullptr));
    OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), second, 1200));
    CHECK(back == values);
    EXPECT(cuMemcpyHtoD(first + 4, values.data(), 1200), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(back.data()), values.data(), 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoH(back.data(), reinterpret_cast<CUdeviceptr>(values.data()), 8), CUDA_ERROR_INVALID_VALUE);
    // A box of 3 rows of 5 numbers at (2, 1) of rows of 10, to rows of 5 numbers.
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = first;
    box.srcPitch = 40;
    box.srcXInBytes = 8;
    box.srcY = 1;
    box.dstMemoryType = CU_MEMORYTYPE_HOST;
    std::vector<int> part(15);
    box.dstHost = part.data();
    box.dstPitch = 20;
    box.WidthInBytes = 20;
    box.Height = 3;
    OK(cuMemcpy2D(&box));
    for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 5; ++x) CHECK(part[y * 5 + x] == values[(y + 1) * 10 + x + 2]);
    box.srcPitch = 24;  // less than what a row takes from x on
    EXPECT(cuMemcpy2D(&box), CUDA_ERROR_INVALID_VALUE);
    // 2 planes of 2 rows of 3 numbers at (1, 1, 1) of 10 x 5 x 6.
    CUDA_MEMCPY3D cube{};
    cube.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    cube.srcDevice = first;
    cube.srcPitch = 40;
    cube.srcHeight = 5;
    cube.srcXInBytes = 4;
    cube.srcY = cube.srcZ = 1;
    cube.dstMemoryType = CU_MEMORYTYPE_HOST;
    std::vector<int> little(12);
    cube.dstHost = little.data();
    cube.dstPitch = 12;
    cube.dstHeight = 2;
    cube.WidthInBytes = 12;
    cube.Height = cube.Depth = 2;
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpy3DAsync(&cube, stream));
    OK(cuStreamSynchronize(stream));
    for (int z = 0; z < 2; ++z)
        for (int y = 0; y < 2; ++y)
            for (int x = 0; x < 3; ++x) CHECK(little[z * 6 + y * 3 + x] == values[(z + 1) * 50 + (y + 1) * 10 + x + 1]);
}

CASE(fills) {
    new_context();
    CUdeviceptr address = upload(std::vector<unsigned>(16));
    OK(cuMemsetD32(address, 0x01020304, 16));
    OK(cuMemsetD16(address + 4, 0xabcd, 2));
    OK(cuMemsetD8(address + 1, 0xff, 1));
    std::vector<unsigned> values = download<unsigned>(address, 16);
    CHECK(values[0] == 0x0102ff04 && values[1] == 0xabcdabcd && values[2] == 0x01020304 && values[15] == 0x01020304);
    OK(cuMemsetD2D32(address, 16, 9, 2, 3));
    OK(cuMemsetD2D8Async(address + 8, 16, 1, 4, 2, nullptr));
    values = download<unsigned>(address, 16);
    CHECK(values[0] == 9 && values[1] == 9 && values[2] == 0x01010101 && values[10] == 0x01020304);
    EXPECT(cuMemsetD16(address + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD32(address, 0, 17), CUDA_ERROR_INVALID_VALUE);
}

// One of each width, each way: rows of 2 elements of 16 bytes apart, and what is not awaited.
CASE(fills_of_each_width) {
    new_context();
    CUdeviceptr at = upload(std::vector<unsigned>(32));
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemsetD2D8(at, 16, 1, 2, 2));
    OK(cuMemsetD2D16(at + 4, 16, 2, 2, 2));
    OK(cuMemsetD2D16Async(at + 32, 16, 3, 2, 2, stream));
    OK(cuMemsetD2D32Async(at + 36, 16, 4, 2, 2, stream));
    OK(cuMemsetD8Async(at + 64, 5, 3, stream));
    OK(cuMemsetD16Async(at + 68, 6, 3, stream));
    OK(cuStreamSynchronize(stream));
    const unsigned wanted[32] = {0x0101, 0x20002, 0,       0, 0x0101, 0x20002, 0,        0,       0x30003, 4,
                                 4,      0,       0x30003, 4, 4,      0,       0x050505, 0x60006, 6};
    CHECK(!std::memcmp(download<unsigned>(at, 32).data(), wanted, sizeof wanted));
    EXPECT(cuMemsetD2D16(at + 1, 16, 2, 2, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D32Async(at, 16, 4, 2, 9, stream), CUDA_ERROR_INVALID_VALUE);
}

CASE(copies_between_all) {
    new_context();
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const std::vector<int> values{10, 11, 12, 13, 14, 15, 16, 17};
    std::vector<int> back(8);
    CUdeviceptr from = upload(values), to = upload(std::vector<int>(8));
    OK(cuMemcpyHtoDAsync(to, values.data() + 1, 8, stream));
    OK(cuMemcpyAsync(to + 8, from + 16, 8, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(download<int>(to, 8) == (std::vector<int>{11, 12, 14, 15, 0, 0, 0, 0}));
    // A box of 2 rows of 1 number at (1, 0) of rows of 4, to (2, 0).
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = from;
    box.dstDevice = to;
    box.srcPitch = box.dstPitch = 16;
    box.srcXInBytes = 4;
    box.dstXInBytes = 8;
    box.WidthInBytes = 4;
    box.Height = 2;
    OK(cuMemcpy2DUnaligned(&box));
    box.dstXInBytes = 12;
    OK(cuMemcpy2DAsync(&box, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(download<int>(to, 8) == (std::vector<int>{11, 12, 11, 11, 0, 0, 15, 15}));
    CUDA_ARRAY_DESCRIPTOR description{8, 0, CU_AD_FORMAT_SIGNED_INT32, 1};
    CUarray first, second;
    OK(cuArrayCreate(&first, &description));
    OK(cuArrayCreate(&second, &description));
    OK(cuMemcpyHtoAAsync(first, 0, values.data(), 32, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoA(second, 0, to, 32));
    OK(cuMemcpyAtoA(second, 4, first, 20, 8));
    OK(cuMemcpyAtoHAsync(back.data(), second, 0, 32, nullptr));  // in the order of the two before
    OK(cuStreamSynchronize(nullptr));
    CHECK(back == (std::vector<int>{11, 15, 16, 11, 0, 0, 15, 15}));
    OK(cuMemcpyAtoD(to, first, 24, 8));
    CHECK(download<int>(to, 3) == (std::vector<int>{16, 17, 11}));
}

// A node that fills 2 rows; what it does is changed before and after the graph is cloned.
CASE(nodes_that_fill) {
    CUcontext context = new_context();
    CUdeviceptr at = upload(std::vector<unsigned>(8));
    CUgraph graph, copy;
    CUgraphNode nothing, fill, found[2];
    CUDA_MEMSET_NODE_PARAMS parameters{};
    parameters.dst = at;
    parameters.pitch = 16;
    parameters.value = 7;
    parameters.elementSize = 4;
    parameters.width = parameters.height = 2;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEmptyNode(&nothing, graph, nullptr, 0));
    OK(cuGraphAddMemsetNode(&fill, graph, &nothing, 1, &parameters, context));
    size_t count = 2;
    OK(cuGraphGetRootNodes(graph, found, &count));
    CHECK(count == 1 && found[0] == nothing);
    const auto launched = [&](CUgraph which) {
        CUgraphExec instance;
        OK(cuGraphInstantiate(&instance, which, 0));
        OK(cuGraphLaunch(instance, nullptr));
        return download<unsigned>(at, 8);
    };
    CHECK(launched(graph) == (std::vector<unsigned>{7, 7, 0, 0, 7, 7, 0, 0}));
    OK(cuGraphClone(&copy, graph));
    parameters.value = 8;
    parameters.width = 1;
    OK(cuGraphMemsetNodeSetParams(fill, &parameters));
    CHECK(launched(graph) == (std::vector<unsigned>{8, 7, 0, 0, 8, 7, 0, 0}));
    CHECK(launched(copy) == (std::vector<unsigned>{7, 7, 0, 0, 7, 7, 0, 0}));
    OK(cuGraphDestroyNode(fill));
    CHECK(launched(graph) == (std::vector<unsigned>{7, 7, 0, 0, 7, 7, 0, 0}));
}

CASE(arrays_and_textures) {
    new_context();
    CUDA_ARRAY_DESCRIPTOR description{8, 4, CU_AD_FORMAT_FLOAT, 1}, found{};
    CUarray array;
    OK(cuArrayCreate(&array, &description));
    OK(cuArrayGetDescriptor(&found, array));
    CHECK(found.Width == 8 && found.Height == 4 && found.Format == CU_AD_FORMAT_FLOAT && found.NumChannels == 1);
    std::vector<float> values(32);
    for (int i = 0; i < 32; ++i) values[i] = static_cast<float>(i);
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = CU_MEMORYTYPE_HOST;
    box.srcHost = values.data();
    box.srcPitch = 32;
    box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    box.dstArray = array;
    box.WidthInBytes = 32;
    box.Height = 4;
    OK(cuMemcpy2D(&box));
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC texture{};
    texture.addressMode[0] = texture.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
    CUtexObject object;
    OK(cuTexObjectCreate(&object, &resource, &texture, nullptr));
    CUDA_RESOURCE_DESC same{};
    OK(cuTexObjectGetResourceDesc(&same, object));
    CHECK(same.res.array.hArray == array);
    CUdeviceptr out = upload(std::vector<float>(32));
    int width = 8;
    void *parameters[] = {&object, &out, &width};
    OK(cuLaunchKernel(function_of(load_ptx(), "read_texture"), 1, 1, 1, 8, 4, 1, 0, nullptr, parameters, nullptr));
    CHECK(download<float>(out, 32) == values);
    OK(cuTexObjectDestroy(object));
    OK(cuArrayDestroy(array));
    EXPECT(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
    description.Format = CU_AD_FORMAT_BC1_UNORM;
    EXPECT(cuArrayCreate(&array, &description), CUDA_ERROR_NOT_SUPPORTED);
    // A line of bytes, there and back.
    CUDA_ARRAY3D_DESCRIPTOR line{16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    OK(cuArray3DCreate(&array, &line));
    const char text[] = "fifteen letters";
    char back[16] = "";
    OK(cuMemcpyHtoA(array, 0, text, 16));
    OK(cuMemcpyAtoH(back, array, 0, 16));
    CHECK(!std::strcmp(back, text));
    EXPECT(cuMemcpyAtoH(back, array, 8, 16), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
