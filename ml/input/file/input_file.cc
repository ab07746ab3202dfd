#include "ml/input/file/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "ml/input/file/known_format.h"
#include "ml/input/file/open_error.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/object/remote_file.h"

namespace parasol {
namespace {

constexpr size_t kPackedBufferBytes = 256 << 10;

absl::Status Corrupt(const std::string& path, int64_t offset,
                     absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(path, " at byte ", offset, ": ", what));
}

class PlainFile final : public InputFile {
 public:
  PlainFile(std::string path, Descriptor file, size_t stored_bytes)
      : path_(std::move(path)),
        file_(std::move(file)),
        stored_bytes_(stored_bytes) {}
  PlainFile(std::string path, std::unique_ptr<RemoteFile> remote)
      : path_(std::move(path)),
        remote_(std::move(remote)),
        stored_bytes_(remote_->size()) {}

  absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) override {
    if (remote_ != nullptr) return ReadRemote(out);
    size_t filled = 0;
    while (filled < out.size()) {
      const ssize_t n = pread(file_.get(), out.data() + filled,
                              out.size() - filled, static_cast<off_t>(offset_));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        return absl::UnavailableError(absl::StrCat(path_, " at byte ", offset_,
                                                   ": ", std::strerror(errno)));
      }
      if (n == 0) break;
      filled += n;
      offset_ += n;
    }
    return filled;
  }

  size_t stored_bytes() const override { return stored_bytes_; }
  bool is_packed() const override { return false; }
  void Rewind() { offset_ = 0; }
  int64_t offset() const { return offset_; }
  const std::string& path() const { return path_; }

 private:
  absl::StatusOr<size_t> ReadRemote(absl::Span<uint8_t> out) {
    // An answer that is cut off is read again from its start.
    constexpr size_t kMostAtATime = 8 << 20;
    size_t filled = 0;
    while (filled < out.size()) {
      const size_t n = std::min<size_t>(
          {out.size() - filled, stored_bytes_ - offset_, kMostAtATime});
      if (n == 0) break;
      RETURN_IF_ERROR(remote_->Read(
          offset_,
          absl::MakeSpan(reinterpret_cast<char*>(out.data()) + filled, n)));
      filled += n;
      offset_ += n;
    }
    return filled;
  }

  const std::string path_;
  const Descriptor file_;
  const std::unique_ptr<RemoteFile> remote_;  // null: a file of this machine
  const size_t stored_bytes_;
  int64_t offset_ = 0;
};

// One or more gzip members, as `cat a.gz b.gz` and pigz write them.
class GzipFile final : public InputFile {
 public:
  explicit GzipFile(std::unique_ptr<PlainFile> file)
      : file_(std::move(file)), packed_(kPackedBufferBytes) {}
  ~GzipFile() override {
    if (initialized_) inflateEnd(&zlib_);
  }

  absl::Status Initialize() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&zlib_, MAX_WBITS + kGzipOnly) != Z_OK) {
      return absl::ResourceExhaustedError(
          absl::StrCat(file_->path(), ": no memory to unpack it"));
    }
    initialized_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) override {
    size_t filled = 0;
    while (filled < out.size() && !ended_) {
      ASSIGN_OR_RETURN(const size_t n, Inflate(out.subspan(filled)));
      filled += n;
    }
    return filled;
  }

  size_t stored_bytes() const override { return file_->stored_bytes(); }
  bool is_packed() const override { return true; }

 private:
  // One step of zlib's; may make no byte while it goes through a header.
  absl::StatusOr<size_t> Inflate(absl::Span<uint8_t> out) {
    RETURN_IF_ERROR(Refill());
    if (zlib_.avail_in == 0) {
      if (!between_members_) {
        return Corrupt(file_->path(), file_->offset(), "gzip data is cut off");
      }
      ended_ = true;
      return 0;
    }
    const size_t room =
        std::min<size_t>(out.size(), std::numeric_limits<uInt>::max());
    zlib_.next_out = out.data();
    zlib_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) {
      return Corrupt(file_->path(), file_->offset() - zlib_.avail_in,
                     absl::StrCat("gzip data is corrupt: ",
                                  zlib_.msg ? zlib_.msg : zError(result)));
    }
    between_members_ = result == Z_STREAM_END;
    if (between_members_) inflateReset(&zlib_);
    return room - zlib_.avail_out;
  }

  absl::Status Refill() {
    if (zlib_.avail_in > 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const size_t n, file_->Read(absl::MakeSpan(packed_)));
    zlib_.next_in = packed_.data();
    zlib_.avail_in = static_cast<uInt>(n);
    return absl::OkStatus();
  }

  const std::unique_ptr<PlainFile> file_;
  std::vector<uint8_t> packed_;
  z_stream zlib_ = {};
  bool initialized_ = false;
  bool between_members_ = false;
  bool ended_ = false;
};

// Opens the file at `local`, which messages call `path`.
absl::StatusOr<std::unique_ptr<PlainFile>> OpenLocal(const std::string& path,
                                                     const std::string& local) {
  // Not blocking, so that a pipe without a writer is refused, not waited for.
  Descriptor file(open(local.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return OpenError(path, errno);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return OpenError(path, errno);
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file"));
  }
  return std::make_unique<PlainFile>(path, std::move(file),
                                     static_cast<size_t>(about.st_size));
}

absl::StatusOr<std::unique_ptr<PlainFile>> OpenPlain(const std::string& path) {
  if (!IsUri(path)) return OpenLocal(path, path);
  ASSIGN_OR_RETURN(ObjectCache::Opened opened,
                   ObjectCache::OfProcess().Open(path));
  if (opened.object == nullptr) return OpenLocal(path, opened.copy);
  return std::make_unique<PlainFile>(
      path, std::make_unique<RemoteFile>(std::move(opened.object)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(
    const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<PlainFile> plain, OpenPlain(path));
  uint8_t start[kTfRecordHeaderBytes];
  ASSIGN_OR_RETURN(const size_t n, plain->Read(absl::MakeSpan(start)));
  plain->Rewind();
  if (!IsGzip({reinterpret_cast<const char*>(start), n})) return plain;
  auto gzip = std::make_unique<GzipFile>(std::move(plain));
  RETURN_IF_ERROR(gzip->Initialize());
  return gzip;
}

}  // namespace parasol
