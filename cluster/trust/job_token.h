#ifndef PARASOL_CLUSTER_TRUST_JOB_TOKEN_H_
#define PARASOL_CLUSTER_TRUST_JOB_TOKEN_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

using DerivedKey = std::array<uint8_t, 32>;

// The secret that the tasks of one job share, and nobody else. It is never
// sent: what a task proves, it proves with keys that are derived from it. An
// object keeps the secret out of messages and logs: it has no text.
class JobToken {
 public:
  // A shorter secret can be guessed.
  static constexpr size_t kMinBytes = 16;
  static constexpr size_t kMaxBytes = 4096;

  // Takes the secret that `text` is, without white space around it.
  //   InvalidArgument  it is shorter or longer than the limits.
  static absl::StatusOr<JobToken> Parse(absl::string_view text);
  // Reads the token of a file.
  //   InvalidArgument  the file can't be read, or as above; the message names
  //                    the file.
  static absl::StatusOr<JobToken> Read(const std::string& path);
  // Returns the text of a new token: 32 bytes of the kernel's generator.
  static std::string Draw();

  // Returns the key for one purpose (HKDF-SHA-256). Keys of different purposes
  // and different tokens tell nothing of each other.
  DerivedKey Derive(absl::string_view purpose) const;

  // Returns the name of the job whose token this is: "token-3f29…".
  std::string JobName() const;

 private:
  explicit JobToken(absl::string_view secret) : secret_(secret) {}

  std::string secret_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_JOB_TOKEN_H_
