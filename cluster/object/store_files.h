#ifndef PARASOL_CLUSTER_OBJECT_STORE_FILES_H_
#define PARASOL_CLUSTER_OBJECT_STORE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "ml/input/object/object_store.h"
#include "storage/remote/remote_files.h"

namespace parasol {

// The objects of S3 and of Google's store, as files of checkpoints. What is on
// its way lies in the folder for copies of objects (ObjectCache).
class StoreFiles : public RemoteFiles {
 public:
  explicit StoreFiles(Clock& clock = Clock::Real()) : clock_(clock) {}

  absl::StatusOr<std::vector<Entry>> ListAll(
      const std::string& folder) override;
  absl::StatusOr<About> Look(const std::string& path) override;
  absl::StatusOr<std::string> Read(const std::string& path,
                                   size_t max_bytes) override;
  absl::Status ReadPieces(const std::string& path, uint64_t bytes,
                          VisitPiece visit) override;
  absl::Status Write(const std::string& path, absl::string_view bytes) override;
  absl::Status WriteOnce(const std::string& path,
                         absl::string_view bytes) override;
  absl::Status Upload(const std::string& local,
                      const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& folder) override;
  void Pause(int attempt) override;
  absl::StatusOr<std::string> LocalFolder() override;

 private:
  // A store, and a path in it.
  struct Place {
    std::shared_ptr<const ObjectStore> store;
    std::string path;
  };
  //   InvalidArgument  files of the scheme can't be written as whole ones.
  absl::StatusOr<Place> PlaceOf(const std::string& uri) const;

  Clock& clock_;
};

// Has this process keep checkpoints in object stores, if their names are URIs.
void UseObjectStores();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_OBJECT_STORE_FILES_H_
