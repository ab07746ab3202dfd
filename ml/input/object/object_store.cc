#include "ml/input/object/object_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// What to do if a store refuses.
absl::string_view HowToBeLetIn(const ObjectUri& uri) {
  if (uri.scheme == "s3") {
    return "give the process credentials that may read, list and, for "
           "checkpoints, write it (AWS_ACCESS_KEY_ID and "
           "AWS_SECRET_ACCESS_KEY, a profile or a "
           "role), and the bucket's region";
  }
  if (uri.scheme == "gs") {
    return "give the process credentials that may read, list and, for "
           "checkpoints, write it (GOOGLE_APPLICATION_CREDENTIALS, `gcloud "
           "auth application-default login`, or the machine's service "
           "account), or name a public bucket as gs://anonymous@bucket";
  }
  return "let the process's user read it";
}

absl::string_view HowToGetHadoop(const ObjectUri& uri) {
  return uri.scheme == "hdfs" ? "; hdfs:// needs Hadoop and Java (HADOOP_HOME, "
                                "JAVA_HOME, and CLASSPATH as `hadoop classpath "
                                "--glob` prints it)"
                              : "";
}

}  // namespace

// An object of a bucket, or a file of Hadoop's.
class ArrowObject final : public StoredObject {
 public:
  using Handle =
      std::unique_ptr<ParasolArrowObject, void (*)(ParasolArrowObject*)>;

  ArrowObject(std::shared_ptr<const ObjectStore> store, std::string path,
              Handle handle, uint64_t bytes, std::string version)
      : StoredObject({.uri = store->uri_.Of(path),
                      .bytes = bytes,
                      .version = std::move(version)}),
        store_(std::move(store)),
        path_(std::move(path)),
        handle_(std::move(handle)) {}

  absl::Status Read(uint64_t offset, absl::Span<char> out) const override {
    return store_->attempts_.Make([&] {
      const absl::Status read = store_->Call(path_, [&](char* error) {
        return store_->library_.object_read(
            handle_.get(), static_cast<int64_t>(offset),
            static_cast<int64_t>(out.size()), out.data(), error);
      });
      if (read.ok()) return read;
      const absl::Status failed(
          read.code(), absl::StrCat(read.message(), " (at byte ", offset,
                                    " of ", bytes(), ")"));
      // The answer of a store to a small range may hide why it fails.
      const absl::Status same = CheckIsSameOnce();
      return same.ok() || absl::IsUnavailable(same) ? failed : same;
    });
  }

  absl::Status CheckIsSame() const override {
    return store_->attempts_.Make([this] { return CheckIsSameOnce(); });
  }

 private:
  // CheckIsSame() without a second attempt.
  absl::Status CheckIsSameOnce() const {
    const auto now = store_->OpenOnce(path_);
    if (absl::IsNotFound(now.status())) return Gone();
    RETURN_IF_ERROR(now.status());
    if ((*now)->version() == version() && (*now)->bytes() == bytes()) {
      return absl::OkStatus();
    }
    return Changed((*now)->bytes());
  }

  const std::shared_ptr<const ObjectStore> store_;
  const std::string path_;
  const Handle handle_;
};

absl::Status ObjectStore::ErrorOf(const ObjectUri& uri,
                                  const std::string& shown, int code,
                                  absl::string_view what) {
  const std::string text = absl::StrCat(OneLine(shown), ": ", OneLine(what));
  switch (code) {
    case PARASOL_ARROW_NOT_FOUND:
      return absl::NotFoundError(
          absl::StrCat(OneLine(shown), ": there is no such ",
                       uri.scheme == "hdfs" ? "file" : "object or bucket", " (",
                       OneLine(what), ")"));
    case PARASOL_ARROW_REFUSED:
      return absl::PermissionDeniedError(
          absl::StrCat(text, "; ", HowToBeLetIn(uri)));
    case PARASOL_ARROW_MAY_PASS:
      return absl::UnavailableError(text);
    case PARASOL_ARROW_NO_TOKEN:
      return absl::UnavailableError(
          absl::StrCat(text, "; if none are given, ", HowToBeLetIn(uri)));
    case PARASOL_ARROW_NO_MEMORY:
      return absl::ResourceExhaustedError(text);
    default:
      return uri.scheme == "hdfs" ? absl::FailedPreconditionError(
                                        absl::StrCat(text, HowToGetHadoop(uri)))
                                  : absl::InvalidArgumentError(text);
  }
}

absl::StatusOr<std::shared_ptr<const ObjectStore>> ObjectStore::Open(
    const ObjectUri& uri, Clock& clock) {
  struct Opened {
    absl::Mutex mu;
    std::map<std::string, std::shared_ptr<const ObjectStore>> stores
        ABSL_GUARDED_BY(mu);
  };
  static auto* const opened = new Opened;
  const std::string name = uri.Store();
  {
    const absl::MutexLock lock(&opened->mu);
    const auto known = opened->stores.find(name);
    if (known != opened->stores.end()) return known->second;
  }
  ASSIGN_OR_RETURN(const ArrowLibrary library, ArrowLibrary::Open(), _ << name);
  ParasolArrowStore* store = nullptr;
  char error[PARASOL_ARROW_ERROR_BYTES] = {};
  RETURN_IF_ERROR(Attempts(clock).Make([&] {
    const int code =
        library.store(name.c_str(), library.folder.c_str(), &store, error);
    return code == 0 ? absl::OkStatus() : ErrorOf(uri, name, code, error);
  }));
  // Another thread may have opened it meanwhile.
  std::shared_ptr<const ObjectStore> fresh(
      new ObjectStore(library, uri, store, clock));
  const absl::MutexLock lock(&opened->mu);
  return opened->stores.emplace(name, std::move(fresh)).first->second;
}

absl::Status ObjectStore::Call(absl::string_view path,
                               absl::FunctionRef<int(char* error)> call) const {
  char error[PARASOL_ARROW_ERROR_BYTES] = {};
  const int code = call(error);
  if (code == 0) return absl::OkStatus();
  return ErrorOf(uri_, uri_.Of(path), code, error);
}

absl::StatusOr<std::vector<ObjectEntry>> ObjectStore::List(
    const std::string& folder, Depth depth) const {
  std::vector<ObjectEntry> entries;
  const auto visit = [](void* context, const char* path, int64_t bytes) {
    static_cast<std::vector<ObjectEntry>*>(context)->push_back(
        {.path = path,
         .bytes = static_cast<uint64_t>(std::max<int64_t>(0, bytes)),
         .is_folder = bytes < 0});
  };
  RETURN_IF_ERROR(attempts_.Make([&] {
    entries.clear();
    return Call(folder, [&](char* error) {
      return library_.list(store_, folder.c_str(), static_cast<int>(depth),
                           visit, &entries, error);
    });
  }));
  return entries;
}

absl::StatusOr<ObjectEntry> ObjectStore::Find(const std::string& path) const {
  int64_t bytes = 0;
  RETURN_IF_ERROR(attempts_.Make([&] {
    return Call(path, [&](char* error) {
      return library_.stat(store_, path.c_str(), &bytes, error);
    });
  }));
  return ObjectEntry{
      .path = path,
      .bytes = static_cast<uint64_t>(std::max<int64_t>(0, bytes)),
      .is_folder = bytes < 0};
}

absl::StatusOr<std::shared_ptr<const StoredObject>> ObjectStore::OpenOnce(
    const std::string& path) const {
  ParasolArrowObject* opened = nullptr;
  int64_t bytes = 0;
  char version[PARASOL_ARROW_VERSION_BYTES] = {};
  RETURN_IF_ERROR(Call(path, [&](char* error) {
    return library_.object(store_, path.c_str(), &opened, &bytes, version,
                           error);
  }));
  return std::make_shared<ArrowObject>(
      shared_from_this(), path,
      ArrowObject::Handle(opened, library_.object_close),
      static_cast<uint64_t>(bytes), version);
}

absl::StatusOr<std::shared_ptr<const StoredObject>> ObjectStore::OpenObject(
    const std::string& path) const {
  std::shared_ptr<const StoredObject> object;
  RETURN_IF_ERROR(attempts_.Make([&]() -> absl::Status {
    ASSIGN_OR_RETURN(object, OpenOnce(path));
    return absl::OkStatus();
  }));
  return object;
}

absl::Status ObjectStore::WriteOnce(const std::string& path,
                                    const Source& source) const {
  struct Reading {
    const Source& source;
    absl::Status failed;
  };
  Reading reading = {.source = source, .failed = {}};
  const ParasolArrowInput input = {
      .context = &reading,
      .size = static_cast<int64_t>(source.bytes),
      .read = [](void* context, int64_t offset, int64_t size,
                 void* out) -> int {
        auto& reading = *static_cast<Reading*>(context);
        reading.failed = reading.source.read(
            static_cast<uint64_t>(offset),
            absl::MakeSpan(static_cast<char*>(out), static_cast<size_t>(size)));
        return reading.failed.ok() ? 0 : 1;
      }};
  const absl::Status written = Call(path, [&](char* error) {
    return library_.write(store_, path.c_str(), &input, error);
  });
  return reading.failed.ok() ? written : reading.failed;
}

absl::Status ObjectStore::Write(const std::string& path,
                                const Source& source) const {
  return attempts_.Make([&] { return WriteOnce(path, source); });
}

absl::Status ObjectStore::Remove(const std::string& path) const {
  return attempts_.Make([&] {
    return Call(path, [&](char* error) {
      return library_.remove(store_, path.c_str(), /*is_folder=*/0, error);
    });
  });
}

absl::Status ObjectStore::RemoveFolder(const std::string& folder) const {
  return attempts_.Make([&] {
    return Call(folder, [&](char* error) {
      return library_.remove(store_, folder.c_str(), /*is_folder=*/1, error);
    });
  });
}

}  // namespace parasol
