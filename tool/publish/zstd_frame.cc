#include "tool/publish/zstd_frame.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "zstd.h"

namespace parasol {
namespace {

// Fast, as deltas are written while a job trains.
constexpr int kLevel = 1;

}  // namespace

void ZstdFrame::Free::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

ZstdFrame::ZstdFrame(uint64_t content_bytes, StagedFile& file)
    : context_(ZSTD_createCCtx()), file_(file), out_(ZSTD_CStreamOutSize(), 0) {
  CHECK(context_ != nullptr) << "no memory for zstd";
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setPledgedSrcSize(context_.get(), content_bytes);
}

ZstdFrame::~ZstdFrame() = default;

absl::Status ZstdFrame::Add(absl::string_view content) {
  return Compress(content, false);
}

absl::Status ZstdFrame::Finish() { return Compress({}, true); }

absl::Status ZstdFrame::Compress(absl::string_view content, bool is_last) {
  ZSTD_inBuffer in = {content.data(), content.size(), 0};
  const ZSTD_EndDirective directive = is_last ? ZSTD_e_end : ZSTD_e_continue;
  for (size_t left = 1; is_last ? left != 0 : in.pos < in.size;) {
    ZSTD_outBuffer out = {out_.data(), out_.size(), 0};
    left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
    if (ZSTD_isError(left)) {
      return absl::InternalError(
          absl::StrCat("zstd: ", ZSTD_getErrorName(left)));
    }
    RETURN_IF_ERROR(file_.Append(absl::string_view(out_.data(), out.pos)));
  }
  return absl::OkStatus();
}

}  // namespace parasol
