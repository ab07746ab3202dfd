#ifndef PARASOL_CHIEF_NEW_FILES_H_
#define PARASOL_CHIEF_NEW_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace parasol {

// The files of a training set that grows which are new: those with greater
// names than all that were taken before. Files get their names in the order of
// these, by renames; a folder that is read meanwhile may show one and not the
// one before it. So a folder is read twice: what came before something that the
// first reading shows is in the second one. Pure.
class NewFiles {
 public:
  // `last`: the greatest name that was taken; empty: none. `taken`: names,
  // ascending, of files that were taken last, as far back as it is known;
  // `are_all`: no others were taken. Otherwise what a first look finds of older
  // ones may have been taken.
  explicit NewFiles(std::string last = "",
                    const std::vector<std::string>& taken = {},
                    bool are_all = false);

  struct Found {
    std::vector<std::string> fresh;  // files to be taken, in order
    // Files that have come since the last look, and whose names are not greater
    // than all that were taken by then. They are named once, and not taken.
    std::vector<std::string> late;
  };
  // Takes the names, each ascending, of two readings, one after the other.
  Found Look(const std::vector<std::string>& first,
             const std::vector<std::string>& second);

  // Notes that a file was taken, or left out for good.
  void Take(const std::string& name);

 private:
  std::string last_;
  // Hashes of the names up to last_ that were there at the last look or were
  // taken since.
  absl::flat_hash_set<size_t> known_;
  // Name up to which files are known that the first look finds.
  std::string known_until_;
  bool has_looked_ = false;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_NEW_FILES_H_
