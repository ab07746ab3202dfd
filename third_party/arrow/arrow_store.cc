// The part of libparasol_arrow.so that knows object stores, as arrow_shim.h
// declares it, by Apache Arrow's file systems.

#include <arrow/filesystem/filesystem.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/util/io_util.h>
#include <arrow/util/key_value_metadata.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "arrow_error.h"
#include "arrow_google.h"
#include "arrow_shim.h"

namespace {

using arrow::Result;
using arrow::Status;

// The caller tries again, names what waits, and knows when to end.
class NoRetries final : public arrow::fs::S3RetryStrategy {
 public:
  bool ShouldRetry(const AWSErrorDetail& /*error*/,
                   int64_t /*attempted*/) override {
    return false;
  }
  int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail& /*error*/,
                                        int64_t /*attempted*/) override {
    return 0;
  }
};

// But for what is written: a part that a server refuses would have all parts of
// an upload sent again.
class PartRetries final : public arrow::fs::S3RetryStrategy {
 public:
  bool ShouldRetry(const AWSErrorDetail& error, int64_t attempted) override {
    return error.should_retry && attempted < kMost;
  }
  int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail& /*error*/,
                                        int64_t attempted) override {
    return kFirstPauseMs << std::min(attempted, kMost);
  }

 private:
  static constexpr int64_t kMost = 4;
  static constexpr int64_t kFirstPauseMs = 50;
};

// The wheel's TLS looks for certificates where another system has them.
constexpr char kCertificates[] = "/etc/ssl/certs/ca-certificates.crt";

Status InitializeStores() {
  arrow::fs::FileSystemGlobalOptions options;
  const char* const named = std::getenv("SSL_CERT_FILE");
  options.tls_ca_file_path = named != nullptr ? named : kCertificates;
  std::FILE* const file = std::fopen(options.tls_ca_file_path.c_str(), "r");
  if (file == nullptr) options.tls_ca_file_path.clear();
  if (file != nullptr) std::fclose(file);
  return arrow::fs::Initialize(options);
}

// Opens the library of S3, which most processes do without. It has no symbols
// that others could take for theirs.
Status LoadS3(const std::string& libraries) {
  const std::string path = libraries + "/" PARASOL_ARROW_S3;
  return arrow::fs::LoadFileSystemFactories(path.c_str());
}

Status LoadStores(const std::string& uri, const std::string& libraries) {
  static std::mutex mutex;
  static bool is_initialized = false;
  static bool has_s3 = false;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!is_initialized) ARROW_RETURN_NOT_OK(InitializeStores());
  is_initialized = true;
  if (has_s3 || uri.rfind("s3:", 0) != 0) return Status::OK();
  ARROW_RETURN_NOT_OK(LoadS3(libraries));
  has_s3 = true;
  return Status::OK();
}

Result<std::shared_ptr<arrow::fs::FileSystem>> OpenStore(
    const std::string& uri) {
  if (IsGoogleStore(uri)) {
    return OpenGoogleStore(uri, /*retries_parts=*/false);
  }
  if (uri.rfind("s3:", 0) != 0) return arrow::fs::FileSystemFromUri(uri);
  const std::shared_ptr<arrow::fs::S3RetryStrategy> no_retries =
      std::make_shared<NoRetries>();
  return arrow::fs::FileSystemFromUriAndOptions(
      uri, {{"retry_strategy", no_retries}});
}

// Bytes that are written with one request, and not as an upload of parts.
constexpr int64_t kMostInRequest = 4 << 20;

// Opens a store to be written. One request is tried again by the caller, who
// may have lost the right to write meanwhile.
Result<std::shared_ptr<arrow::fs::FileSystem>> OpenWriter(
    const std::string& uri, bool is_for_requests) {
  if (IsGoogleStore(uri)) return OpenGoogleStore(uri, !is_for_requests);
  if (uri.rfind("s3:", 0) != 0) return OpenStore(uri);
  std::shared_ptr<arrow::fs::S3RetryStrategy> retries;
  if (is_for_requests) {
    retries = std::make_shared<NoRetries>();
  } else {
    retries = std::make_shared<PartRetries>();
  }
  // What is small is one request, not an upload of parts.
  return arrow::fs::FileSystemFromUriAndOptions(
      uri + (uri.find('?') == std::string::npos ? "?" : "&") +
          "allow_delayed_open=true",
      {{"retry_strategy", retries}});
}

// Has what stores share end with the process, before what they were opened
// with ends: after the last one whose library was loaded, not the first.
void FinalizeAtEnd(bool is_s3) {
  static std::once_flag registered[2];
  std::call_once(registered[is_s3 ? 1 : 0], [] {
    static_cast<void>(std::atexit([] { arrow::fs::EnsureFinalized(); }));
  });
}

// What tells versions of an object apart: facts of S3 and of Google's store,
// whose other ones change with the object's class of storage, too.
constexpr const char* kVersionFacts[] = {
    "ETag",
    "VersionId",
    "Last-Modified",
    "generation",
};

Result<std::string> VersionOf(arrow::fs::FileSystem& store,
                              const std::string& path,
                              arrow::io::RandomAccessFile& object) {
  std::string version;
  ARROW_ASSIGN_OR_RAISE(const auto facts, object.ReadMetadata());
  for (const char* const name : kVersionFacts) {
    if (facts == nullptr || !facts->Contains(name)) continue;
    ARROW_ASSIGN_OR_RAISE(const std::string value, facts->Get(name));
    version += std::string(name) + "=" + value + " ";
  }
  if (!version.empty()) return version;
  ARROW_ASSIGN_OR_RAISE(const arrow::fs::FileInfo info,
                        store.GetFileInfo(path));
  return "mtime=" + std::to_string(info.mtime().time_since_epoch().count());
}

// Bytes whose change shows that an answer had them.
constexpr size_t kMarkBytes = 16;
using Mark = std::array<uint8_t, kMarkBytes>;

Mark NewMark() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  Mark mark;
  for (uint8_t& byte : mark) byte = static_cast<uint8_t>(random());
  return mark;
}

Status Short() { return Status::IOError("an answer has too few bytes"); }

// Reads into `out`, whose last bytes are a mark, and returns how many of these
// may have been written by nobody. Arrow returns the size asked for, also where
// S3's answer had less.
Result<int64_t> ReadMarked(arrow::io::RandomAccessFile& object, int64_t offset,
                           int64_t size, uint8_t* out) {
  const Mark mark = NewMark();
  const auto marked = std::min<int64_t>(size, kMarkBytes);
  std::copy_n(mark.end() - marked, marked, out + size - marked);
  ARROW_ASSIGN_OR_RAISE(const int64_t read, object.ReadAt(offset, size, out));
  if (read != size) return Short();
  int64_t unwritten = 0;
  while (unwritten < marked &&
         out[size - 1 - unwritten] == mark[kMarkBytes - 1 - unwritten]) {
    ++unwritten;
  }
  return unwritten;
}

// Fills `out` with bytes of an object, or fails.
Status ReadExactly(arrow::io::RandomAccessFile& object, int64_t offset,
                   int64_t size, uint8_t* out) {
  ARROW_ASSIGN_OR_RAISE(const int64_t doubtful,
                        ReadMarked(object, offset, size, out));
  if (doubtful == 0) return Status::OK();
  if (doubtful == kMarkBytes) return Short();
  // By chance the object may have the mark's last bytes.
  uint8_t again[kMarkBytes];
  ARROW_ASSIGN_OR_RAISE(
      const int64_t unwritten,
      ReadMarked(object, offset + size - doubtful, doubtful, again));
  const bool is_same =
      std::equal(again, again + doubtful, out + size - doubtful);
  return is_same && unwritten < doubtful ? Status::OK() : Short();
}

// Bytes that are sent before their answers are awaited: Arrow keeps a copy of
// each part until then.
constexpr int64_t kSentAtOnce = 64 << 20;
constexpr int64_t kSentPiece = 8 << 20;
// Google's store takes one part after the other.
constexpr int64_t kSentPieceOfGoogle = 16 << 20;

// Sends `input` to `object` in pieces of the size of `piece`, but for the
// request that makes an object of it.
Status SendAll(arrow::io::OutputStream& object, const ParasolArrowInput& input,
               std::vector<uint8_t>& piece) {
  int64_t unanswered = 0;
  for (int64_t offset = 0; offset < input.size;) {
    const auto size =
        std::min(static_cast<int64_t>(piece.size()), input.size - offset);
    if (input.read(input.context, offset, size, piece.data()) != 0) {
      return Status::Invalid("what is to be written can't be read");
    }
    ARROW_RETURN_NOT_OK(object.Write(piece.data(), size));
    offset += size;
    unanswered += size;
    if (unanswered < kSentAtOnce) continue;
    ARROW_RETURN_NOT_OK(object.Flush());
    unanswered = 0;
  }
  return object.Flush();
}

// An upload that the store has forgotten begins anew with another attempt; that
// there is no bucket its beginning has said.
Status FaultOfUpload(const Status& fault) {
  if (StoreCode(fault) != PARASOL_ARROW_NOT_FOUND) return fault;
  return Status::IOError("the store has forgotten what was sent so far");
}

Status WriteObject(arrow::fs::FileSystem& store, bool is_google,
                   const std::string& path, const ParasolArrowInput& input) {
  std::vector<uint8_t> piece(static_cast<size_t>(
      std::min(is_google ? kSentPieceOfGoogle : kSentPiece, input.size)));
  ARROW_ASSIGN_OR_RAISE(const auto object, store.OpenOutputStream(path));
  if (is_google) {
    GoogleUpload upload(object);
    const Status sent = SendAll(*object, input, piece);
    if (sent.ok()) {
      const Status closed = upload.Close();
      return closed.ok() ? closed : FaultOfUpload(closed);
    }
    upload.Leave();
    return FaultOfUpload(sent);
  }
  const Status sent = SendAll(*object, input, piece);
  if (sent.ok()) return object->Close();
  // What was sent would stay, unseen and paid for.
  static_cast<void>(object->Abort());
  return sent;
}

Status RemoveFrom(arrow::fs::FileSystem& store, const std::string& path,
                  bool is_folder) {
  const Status removed =
      is_folder ? store.DeleteDir(path) : store.DeleteFile(path);
  return removed.IsIOError() && StoreCode(removed) == PARASOL_ARROW_NOT_FOUND
             ? Status::OK()
             : removed;
}

int Fail(const char* what, char* error, int code) {
  std::snprintf(error, PARASOL_ARROW_ERROR_BYTES, "%s", what);
  return code;
}

// Keeps the signal from this thread, and from threads that it starts, that a
// connection sends which its server has closed: it would end the process.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    if (sigismember(&before_, SIGPIPE)) return;
    const timespec at_once = {};
    while (sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

// Calls `function`, which returns a Status; whatever it throws becomes an
// error.
template <typename Function>
int GuardedStore(char* error, const Function& function) {
  const NoPipeSignal no_pipe_signal;
  try {
    const Status status = function();
    return status.ok()
               ? 0
               : Fail(StoreMessage(status).c_str(), error, StoreCode(status));
  } catch (const std::bad_alloc&) {
    return Fail("no memory for what the store sends", error,
                PARASOL_ARROW_NO_MEMORY);
  } catch (const std::exception& thrown) {
    return Fail(thrown.what(), error, 1);
  } catch (...) {
    return Fail("an unknown exception", error, 1);
  }
}

}  // namespace

struct ParasolArrowStore {
  std::string uri;
  bool is_google;
  std::shared_ptr<arrow::fs::FileSystem> store;
  std::mutex mutex;
  // Null until they are needed: for objects that are sent in parts, and for
  // those that are one request.
  std::shared_ptr<arrow::fs::FileSystem> writers[2];

  Result<std::shared_ptr<arrow::fs::FileSystem>> WriterOf(int64_t size) {
    const std::lock_guard<std::mutex> lock(mutex);
    const bool is_request = size <= kMostInRequest;
    std::shared_ptr<arrow::fs::FileSystem>& writer = writers[is_request];
    if (writer == nullptr) {
      ARROW_ASSIGN_OR_RAISE(writer, OpenWriter(uri, is_request));
    }
    return writer;
  }
};

struct ParasolArrowObject {
  bool is_google;
  int64_t bytes;
  std::shared_ptr<arrow::io::RandomAccessFile> object;
  std::mutex mutex;
  bool has_begun = false;

  // Has the object be read from now on.
  Status Begin() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (is_google && !has_begun) {
      ARROW_RETURN_NOT_OK(BeginGoogleObject(*object, bytes));
    }
    has_begun = true;
    return Status::OK();
  }
};

// All else is compiled hidden.
#pragma GCC visibility push(default)
extern "C" {

int parasol_arrow_store(const char* uri, const char* libraries,
                        ParasolArrowStore** store, char* error) {
  *store = nullptr;
  return GuardedStore(error, [&]() -> Status {
    ARROW_RETURN_NOT_OK(LoadStores(uri, libraries));
    auto opened = std::make_unique<ParasolArrowStore>();
    opened->uri = uri;
    opened->is_google = IsGoogleStore(uri);
    ARROW_ASSIGN_OR_RAISE(opened->store, OpenStore(uri));
    FinalizeAtEnd(opened->uri.rfind("s3:", 0) == 0);
    *store = opened.release();
    return Status::OK();
  });
}

int parasol_arrow_list(ParasolArrowStore* store, const char* folder, int depth,
                       void (*visit)(void* context, const char* path,
                                     int64_t bytes),
                       void* context, char* error) {
  return GuardedStore(error, [&]() -> Status {
    const bool is_deep = depth == PARASOL_ARROW_ALL;
    const bool has_folders = depth != PARASOL_ARROW_FOLDER || !store->is_google;
    ARROW_ASSIGN_OR_RAISE(const std::vector<arrow::fs::FileInfo> entries,
                          has_folders
                              ? ListFiles(*store->store, folder, is_deep)
                              : ListGoogleFolder(*store->store, folder));
    for (const arrow::fs::FileInfo& entry : entries) {
      visit(context, entry.path().c_str(), entry.IsFile() ? entry.size() : -1);
    }
    return Status::OK();
  });
}

int parasol_arrow_stat(ParasolArrowStore* store, const char* path,
                       int64_t* bytes, char* error) {
  return GuardedStore(error, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const arrow::fs::FileInfo info,
                          store->is_google ? LookAtGoogle(*store->store, path)
                                           : store->store->GetFileInfo(path));
    if (info.type() == arrow::fs::FileType::NotFound) {
      return arrow::internal::IOErrorFromErrno(ENOENT, "there is none");
    }
    *bytes = info.IsFile() ? info.size() : -1;
    return Status::OK();
  });
}

int parasol_arrow_object(ParasolArrowStore* store, const char* path,
                         ParasolArrowObject** object, int64_t* bytes,
                         char* version, char* error) {
  *object = nullptr;
  return GuardedStore(error, [&]() -> Status {
    auto opened = std::make_unique<ParasolArrowObject>();
    opened->is_google = store->is_google;
    ARROW_ASSIGN_OR_RAISE(opened->object, store->store->OpenInputFile(path));
    ARROW_ASSIGN_OR_RAISE(*bytes, opened->object->GetSize());
    ARROW_ASSIGN_OR_RAISE(const std::string text,
                          VersionOf(*store->store, path, *opened->object));
    opened->bytes = *bytes;
    if (text.size() >= PARASOL_ARROW_VERSION_BYTES) {
      return Status::Invalid("the object's version is too long a text");
    }
    std::memcpy(version, text.c_str(), text.size() + 1);
    *object = opened.release();
    return Status::OK();
  });
}

void parasol_arrow_object_close(ParasolArrowObject* object) {
  char error[PARASOL_ARROW_ERROR_BYTES];
  GuardedStore(error, [&] {
    delete object;
    return Status::OK();
  });
}

int parasol_arrow_object_read(ParasolArrowObject* object, int64_t offset,
                              int64_t size, void* out, char* error) {
  return GuardedStore(error, [&]() -> Status {
    ARROW_RETURN_NOT_OK(object->Begin());
    return ReadExactly(*object->object, offset, size,
                       static_cast<uint8_t*>(out));
  });
}

int parasol_arrow_write(ParasolArrowStore* store, const char* path,
                        const ParasolArrowInput* input, char* error) {
  return GuardedStore(error, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const auto writer, store->WriterOf(input->size));
    return WriteObject(*writer, store->is_google, path, *input);
  });
}

int parasol_arrow_remove(ParasolArrowStore* store, const char* path,
                         int is_folder, char* error) {
  return GuardedStore(error, [&] {
    return store->is_google && is_folder != 0
               ? RemoveGoogleFolder(*store->store, path)
               : RemoveFrom(*store->store, path, is_folder != 0);
  });
}

}  // extern "C"
#pragma GCC visibility pop
