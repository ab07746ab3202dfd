#ifndef PARASOL_CLUSTER_TRUST_TOKEN_STORE_H_
#define PARASOL_CLUSTER_TRUST_TOKEN_STORE_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace parasol {

// Returns the folders that a user's tokens may lie in, the preferred one first:
// parasol/tokens in `xdg_data_home`, or else in .local/share of `home`, unless
// neither is an absolute path; and one in /tmp, for users without a home.
std::vector<std::string> TokenFolders(const std::string& xdg_data_home,
                                      const std::string& home,
                                      unsigned int user);

// The file of one run's token, of mode 0600, named after the address of the
// run's chief: so the same user's tool finds it. Locked, and removed with this
// object.
class StoredToken {
 public:
  // Draws a token and writes it into the first of the folders that can be made
  // this user's alone. Replaces what a run that was killed has left there.
  //   InvalidArgument  there is no such folder; the message names the last. Or
  //                    a run with the same chief's address goes on.
  static absl::StatusOr<StoredToken> Draw(
      const std::vector<std::string>& folders, absl::string_view chief_address);
  StoredToken(StoredToken&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        text_(std::exchange(other.text_, {})),
        lock_(std::move(other.lock_)) {}
  StoredToken& operator=(StoredToken&&) = delete;
  ~StoredToken();

  const std::string& path() const { return path_; }
  // The token, for tasks that can't read the file.
  const std::string& text() const { return text_; }

 private:
  //   AlreadyExists  a run with the same chief's address goes on.
  static absl::StatusOr<StoredToken> DrawIn(const std::string& folder,
                                            absl::string_view chief_address);
  StoredToken(std::string path, std::string text, Descriptor lock)
      : path_(std::move(path)),
        text_(std::move(text)),
        lock_(std::move(lock)) {}

  std::string path_;
  std::string text_;
  Descriptor lock_;  // the file, which this process has locked
};

// Returns the path of the token for a chief's address, if one is there.
std::optional<std::string> FindToken(const std::vector<std::string>& folders,
                                     absl::string_view chief_address);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_TOKEN_STORE_H_
