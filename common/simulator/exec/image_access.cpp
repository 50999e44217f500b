#include "exec/image_access.h"

namespace warpsim {

const char *geometry_text(TextureGeometry geometry) {
    switch (geometry) {
        case TextureGeometry::d1:
            return "a 1D image";
        case TextureGeometry::d2:
            return "a 2D image";
        case TextureGeometry::d3:
            return "a 3D image";
        case TextureGeometry::a1d:
            return "layers of 1D images";
        case TextureGeometry::a2d:
            return "layers of 2D images";
        case TextureGeometry::cube:
            return "a cubemap";
        default:
            return "layers of cubemaps";
    }
}

bool geometry_fits(TextureGeometry asked, TextureGeometry held, const Image &image) {
    if (asked == held) return true;
    const auto flat = [](TextureGeometry g) { return g == TextureGeometry::d1 || g == TextureGeometry::d2; };
    return flat(asked) && flat(held) && image.height == 1;
}

uint32_t query_image(ImageQuery query, TextureGeometry geometry, const Image &image, size_t levels, bool normalized) {
    const bool deep = geometry == TextureGeometry::d3;
    const bool cube = geometry == TextureGeometry::cube || geometry == TextureGeometry::acube;
    switch (query) {
        case ImageQuery::width:
            return static_cast<uint32_t>(image.width);
        case ImageQuery::height:
            return static_cast<uint32_t>(image.height);
        case ImageQuery::depth:
            return static_cast<uint32_t>(deep ? image.depth : 1);
        case ImageQuery::array_size:
            return static_cast<uint32_t>(deep ? 1 : cube ? image.depth / 6 : image.depth);
        case ImageQuery::levels:
            return static_cast<uint32_t>(levels);
        default:
            return normalized;
    }
}

}  // namespace warpsim
