#ifndef PARASOL_THIRD_PARTY_ARROW_ARROW_GOOGLE_H_
#define PARASOL_THIRD_PARTY_ARROW_ARROW_GOOGLE_H_

#include <arrow/filesystem/filesystem.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

// Returns what Arrow lists of a folder; with `is_deep` also what is in its
// folders. Nothing if there is no such folder.
arrow::Result<arrow::fs::FileInfoVector> ListFiles(arrow::fs::FileSystem& store,
                                                   const std::string& folder,
                                                   bool is_deep);

// Google's store as Arrow reads it, where that is not what arrow_shim.h says:

bool IsGoogleStore(std::string_view uri);

// Opens the store. With `retries_parts` what fails is asked for again for some
// seconds, and by the caller alone otherwise.
arrow::Result<std::shared_ptr<arrow::fs::FileSystem>> OpenGoogleStore(
    const std::string& uri, bool retries_parts);

// Returns files and folders in a folder, by a look at all that is below it:
// Arrow asks for no folders.
arrow::Result<arrow::fs::FileInfoVector> ListGoogleFolder(
    arrow::fs::FileSystem& store, const std::string& folder);

// Returns what is at a path. Arrow takes a list that fails for an empty one.
arrow::Result<arrow::fs::FileInfo> LookAtGoogle(arrow::fs::FileSystem& store,
                                                const std::string& path);

// Removes all below a folder, where nothing may be.
arrow::Status RemoveGoogleFolder(arrow::fs::FileSystem& store,
                                 const std::string& folder);

// Has an object be read by several threads at a time, and at places that its
// reader chooses. Called by one thread.
arrow::Status BeginGoogleObject(arrow::io::RandomAccessFile& object,
                                int64_t bytes);

// Keeps an upload from becoming an object of a part of its bytes: a stream that
// is destroyed would be closed first.
class GoogleUpload {
 public:
  explicit GoogleUpload(std::shared_ptr<arrow::io::OutputStream> object)
      : object_(
            new std::shared_ptr<arrow::io::OutputStream>(std::move(object))) {}
  GoogleUpload(const GoogleUpload&) = delete;
  GoogleUpload& operator=(const GoogleUpload&) = delete;

  // Makes an object of what was sent.
  arrow::Status Close();
  // Leaves the upload as it is, which the store forgets after a week. Of one
  // that goes on this process keeps what it has.
  void Leave();

 private:
  // Deleted by Close() and Leave() alone.
  std::shared_ptr<arrow::io::OutputStream>* const object_;
};

#endif  // PARASOL_THIRD_PARTY_ARROW_ARROW_GOOGLE_H_
