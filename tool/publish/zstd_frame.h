#ifndef PARASOL_TOOL_PUBLISH_ZSTD_FRAME_H_
#define PARASOL_TOOL_PUBLISH_ZSTD_FRAME_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/tensor_files/staged_file.h"

struct ZSTD_CCtx_s;

namespace parasol {

// One frame of zstd at the end of a file, written as its content comes. The
// frame says how long the content is. Not thread-safe.
class ZstdFrame {
 public:
  // `file` must outlive this object; nothing else may be appended meanwhile.
  ZstdFrame(uint64_t content_bytes, StagedFile& file);
  ZstdFrame(const ZstdFrame&) = delete;
  ZstdFrame& operator=(const ZstdFrame&) = delete;
  ~ZstdFrame();

  // Appends the next bytes of the content. Fails as StagedFile::Append() does,
  // and with
  //   Internal  the content is longer, or shorter at Finish(), than was said.
  absl::Status Add(absl::string_view content);
  // Ends the frame. Must be called once, last.
  absl::Status Finish();

 private:
  absl::Status Compress(absl::string_view content, bool is_last);

  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  StagedFile& file_;
  std::string out_;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_ZSTD_FRAME_H_
