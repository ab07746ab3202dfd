#ifndef PARASOL_STORAGE_REMOTE_TESTING_MEMORY_FILES_H_
#define PARASOL_STORAGE_REMOTE_TESTING_MEMORY_FILES_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "gtest/gtest.h"
#include "storage/remote/remote_files.h"

namespace parasol {

// A store in the test's memory, which the process uses as long as this object
// lives. Before each request it asks the test what becomes of it.
class MemoryFiles : public RemoteFiles {
 public:
  enum class Fate {
    kDone,
    kRefused,  // Unavailable, and nothing is done
    kLost,     // Unavailable, though it is done
    kLate,     // Unavailable, and done by DeliverLate()
    kDead,     // end of the process: nothing is done any more
  };
  struct Request {
    std::string what;  // "list", "look", "read", "write", "remove"
    std::string path;
  };
  using Decide = std::function<Fate(const Request&)>;

  MemoryFiles() { UseRemoteFiles(this); }
  ~MemoryFiles() override { UseRemoteFiles(nullptr); }

  void OnRequest(Decide decide) {
    const absl::MutexLock lock(&mu_);
    decide_ = std::move(decide);
    is_dead_ = false;
  }
  void OnRequest() {
    OnRequest([](const Request&) { return Fate::kDone; });
  }

  // Returns the paths of all files, in order.
  std::vector<std::string> Paths() const {
    const absl::MutexLock lock(&mu_);
    std::vector<std::string> paths;
    for (const auto& [path, file] : files_) paths.push_back(path);
    return paths;
  }
  bool Has(const std::string& path) const {
    const absl::MutexLock lock(&mu_);
    return files_.contains(path);
  }
  void Put(const std::string& path, std::string bytes) {
    const absl::MutexLock lock(&mu_);
    files_[path] = {std::move(bytes), ++versions_};
  }
  int pauses() const { return pauses_; }
  // Number of bytes of the files that were written.
  uint64_t bytes_written() const { return bytes_written_; }
  // Has the store do what was asked for so many late requests ago, the oldest
  // ones first.
  void DeliverLate(size_t requests = SIZE_MAX) {
    std::vector<std::function<void()>> late;
    {
      const absl::MutexLock lock(&mu_);
      requests = std::min(requests, late_.size());
      late.assign(late_.begin(), late_.begin() + requests);
      late_.erase(late_.begin(), late_.begin() + requests);
    }
    for (const auto& act : late) act();
  }

  absl::StatusOr<std::vector<Entry>> ListAll(
      const std::string& folder) override {
    RETURN_IF_ERROR(Ask({"list", folder}, [] {}));
    const absl::MutexLock lock(&mu_);
    const std::string prefix = JoinedPath(folder, "");
    std::vector<Entry> entries;
    for (const auto& [path, file] : files_) {
      if (!absl::StartsWith(path, prefix)) continue;
      entries.push_back({path.substr(prefix.size()), file.bytes.size()});
    }
    return entries;
  }

  absl::StatusOr<About> Look(const std::string& path) override {
    RETURN_IF_ERROR(Ask({"look", path}, [] {}));
    const absl::MutexLock lock(&mu_);
    const auto file = files_.find(path);
    if (file == files_.end()) return None(path);
    return About{.bytes = file->second.bytes.size(),
                 .version = absl::StrCat(file->second.version)};
  }

  absl::StatusOr<std::string> Read(const std::string& path,
                                   size_t max_bytes) override {
    RETURN_IF_ERROR(Ask({"read", path}, [] {}));
    const absl::MutexLock lock(&mu_);
    const auto file = files_.find(path);
    if (file == files_.end()) return None(path);
    return file->second.bytes.substr(0, max_bytes + 1);
  }

  absl::Status ReadPieces(const std::string& path, uint64_t bytes,
                          VisitPiece visit) override {
    ASSIGN_OR_RETURN(const std::string all, Read(path, SIZE_MAX - 1));
    if (all.size() != bytes) {
      return absl::DataLossError(absl::StrCat(path, ": has ", all.size(),
                                              " bytes, should have ", bytes));
    }
    // The last piece first.
    const size_t half = all.size() / 2;
    RETURN_IF_ERROR(visit(half, absl::string_view(all).substr(half)));
    return visit(0, absl::string_view(all).substr(0, half));
  }

  absl::Status Write(const std::string& path,
                     absl::string_view bytes) override {
    return WriteOnce(path, bytes);
  }
  absl::Status WriteOnce(const std::string& path,
                         absl::string_view bytes) override {
    bytes_written_ += bytes.size();
    return Ask({"write", path},
               [this, path, copy = std::string(bytes)] { Put(path, copy); });
  }
  absl::Status Upload(const std::string& local,
                      const std::string& path) override {
    std::ifstream file(local, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return WriteOnce(path, bytes.str());
  }

  absl::Status Remove(const std::string& path) override {
    return Ask({"remove", path}, [this, path] {
      const absl::MutexLock lock(&mu_);
      files_.erase(path);
    });
  }
  absl::Status RemoveFolder(const std::string& folder) override {
    return Ask({"remove", folder}, [this, folder] {
      const absl::MutexLock lock(&mu_);
      const std::string prefix = JoinedPath(folder, "");
      std::erase_if(files_, [&](const auto& file) {
        return absl::StartsWith(file.first, prefix);
      });
    });
  }

  void Pause(int /*attempt*/) override { ++pauses_; }

  absl::StatusOr<std::string> LocalFolder() override {
    const std::string folder = testing::TempDir() + "/memory_files";
    std::filesystem::create_directories(folder);
    return folder;
  }

 private:
  struct File {
    std::string bytes;
    uint64_t version = 0;
  };

  static absl::Status None(const std::string& path) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no such object"));
  }

  template <typename Do>
  absl::Status Ask(const Request& request, Do act) {
    Decide decide;  // the call may set another one
    {
      const absl::MutexLock lock(&mu_);
      decide = decide_;
    }
    const Fate fate = is_dead_ ? Fate::kDead : decide(request);
    if (fate == Fate::kDead) is_dead_ = true;
    if (fate == Fate::kDone || fate == Fate::kLost) act();
    if (fate == Fate::kLate) {
      const absl::MutexLock lock(&mu_);
      late_.emplace_back(act);
    }
    if (fate == Fate::kDone) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(request.path, ": the test has it fail"));
  }

  mutable absl::Mutex mu_;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mu_);
  uint64_t versions_ ABSL_GUARDED_BY(mu_) = 0;
  Decide decide_ ABSL_GUARDED_BY(mu_) = [](const Request&) {
    return Fate::kDone;
  };
  std::vector<std::function<void()>> late_ ABSL_GUARDED_BY(mu_);
  std::atomic<uint64_t> bytes_written_ = 0;
  std::atomic<bool> is_dead_ = false;
  std::atomic<int> pauses_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_REMOTE_TESTING_MEMORY_FILES_H_
