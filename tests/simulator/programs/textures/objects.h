// Texture and surface objects, in few words.
#pragma once

#include "../check.h"

inline cudaResourceDesc resource_of(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

template <class T>
cudaResourceDesc resource_of(T *row, size_t bytes) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = row;
    resource.res.linear.desc = cudaCreateChannelDesc<T>();
    resource.res.linear.sizeInBytes = bytes;
    return resource;
}

template <class T>
cudaResourceDesc resource_of(T *rows, size_t width, size_t height, size_t pitch) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = rows;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<T>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    return resource;
}

inline cudaTextureDesc sampling_of(cudaTextureAddressMode edges, cudaTextureFilterMode filter, bool normalized = false,
                                   cudaTextureReadMode read = cudaReadModeElementType) {
    cudaTextureDesc sampling = {};
    for (cudaTextureAddressMode &mode : sampling.addressMode) mode = edges;
    sampling.filterMode = filter;
    sampling.normalizedCoords = normalized;
    sampling.readMode = read;
    return sampling;
}

inline cudaTextureObject_t texture_of(const cudaResourceDesc &resource, const cudaTextureDesc &sampling = {}) {
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    return texture;
}

inline cudaSurfaceObject_t surface_of(cudaArray_t array) {
    const cudaResourceDesc resource = resource_of(array);
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
}
