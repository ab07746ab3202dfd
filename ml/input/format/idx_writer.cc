#include "ml/input/format/idx_writer.h"

#include <zlib.h>

#include <limits>

#include "base/log.h"
#include "ml/input/format/idx_format.h"

namespace parasol {
namespace {

void AppendNumber(uint32_t number, std::string& file) {
  for (const int shift : {24, 16, 8, 0}) {
    file.push_back(static_cast<char>(number >> shift));
  }
}

}  // namespace

std::string IdxImagesFile(const IdxImages& images) {
  std::string file;
  AppendNumber(kIdxImagesMagic, file);
  AppendNumber(static_cast<uint32_t>(images.count), file);
  AppendNumber(static_cast<uint32_t>(images.height), file);
  AppendNumber(static_cast<uint32_t>(images.width), file);
  file.append(images.pixels.begin(), images.pixels.end());
  return file;
}

std::string IdxLabelsFile(absl::Span<const uint8_t> labels) {
  std::string file;
  AppendNumber(kIdxLabelsMagic, file);
  AppendNumber(static_cast<uint32_t>(labels.size()), file);
  file.append(labels.begin(), labels.end());
  return file;
}

std::string Gzip(absl::string_view bytes) {
  constexpr int kGzipHeader = 16;
  constexpr int kMemoryLevel = 8;
  CHECK_LE(bytes.size(), std::numeric_limits<uInt>::max());
  z_stream zlib = {};
  CHECK_EQ(
      deflateInit2(&zlib, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzipHeader,
                   kMemoryLevel, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string packed(deflateBound(&zlib, bytes.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  CHECK_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

}  // namespace parasol
