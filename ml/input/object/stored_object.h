#ifndef PARASOL_ML_INPUT_OBJECT_STORED_OBJECT_H_
#define PARASOL_ML_INPUT_OBJECT_STORED_OBJECT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace parasol {

// One version of an object of a store, or of a file of a web server, read at
// any place. Thread-safe.
//
// All functions of objects and stores return, with the object's URI,
//   NotFound            there is no such object, bucket or host.
//   PermissionDenied    the store refuses, or has no credentials: says what
//                       to do.
//   Unavailable         network or server fail, also after Attempts: another
//                       try may succeed.
//   FailedPrecondition  a library is not installed: says how to do it; or what
//                       a web server answers is refused (WebClient::Get()).
//   InvalidArgument     options that the store does not understand.
class StoredObject {
 public:
  virtual ~StoredObject() = default;

  const std::string& uri() const { return about_.uri; }
  uint64_t bytes() const { return about_.bytes; }
  // A text that no other version of the object has.
  const std::string& version() const { return about_.version; }

  // Returns false if reading a part takes as long as all that is before it.
  virtual bool has_parts() const { return true; }

  // Fills `out` with the object's bytes from `offset` on, which it has.
  //   DataLoss  the object has changed, or is gone.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) const = 0;

  // Takes bytes of the object, which begin at `offset`.
  using Sink =
      absl::FunctionRef<absl::Status(uint64_t offset, absl::string_view bytes)>;
  // Gives all bytes to `sink`, `threads` pieces at a time and in any order;
  // some perhaps more than once.
  //   any other  as for Read(), or an error of `sink`.
  virtual absl::Status ReadAll(size_t piece_bytes, size_t threads,
                               Sink sink) const;

  // Returns OK if the store has this version of the object.
  //   DataLoss  it has another one, or none: names it.
  virtual absl::Status CheckIsSame() const = 0;

 protected:
  struct About {
    std::string uri;
    uint64_t bytes = 0;
    std::string version;
  };

  explicit StoredObject(About about) : about_(std::move(about)) {}

  // Returns DataLoss for an object that now has other bytes, or is not there.
  absl::Status Changed(uint64_t bytes_now) const;
  absl::Status Gone() const;

 private:
  const About about_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_STORED_OBJECT_H_
