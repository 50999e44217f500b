// Every function that libcuda.so.1 exports as of CUDA 13.0, once, by subject:
//   SYMBOL(exported name, name that cuGetProcAddress knows, CUDA version that it came with, per-thread default stream)
// Included where SYMBOL is defined. tests/simulator/test_driver_api.py compares the rows with the toolkit.
#include "driver/symbols/array.h"
#include "driver/symbols/context.h"
#include "driver/symbols/copy.h"
#include "driver/symbols/device.h"
#include "driver/symbols/driver.h"
#include "driver/symbols/function.h"
#include "driver/symbols/graph.h"
#include "driver/symbols/graphics.h"
#include "driver/symbols/memory.h"
#include "driver/symbols/module.h"
#include "driver/symbols/pool.h"
#include "driver/symbols/stream.h"
#include "driver/symbols/texture.h"
#include "driver/symbols/virtual_memory.h"
