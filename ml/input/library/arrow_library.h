#ifndef PARASOL_ML_INPUT_LIBRARY_ARROW_LIBRARY_H_
#define PARASOL_ML_INPUT_LIBRARY_ARROW_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "third_party/arrow/arrow_shim.h"

namespace parasol {

// The functions of libparasol_arrow.so (third_party/arrow), which
// `deploy/arrow` makes. It is opened when a job has files of Parquet or Arrow,
// or in an object store, and stays open until the process ends: Arrow has
// threads. Thread-safe; each file is for one thread at a time.
struct ArrowLibrary {
  // Opens the library in the folder that the environment's PARASOL_ARROW names,
  // or else in the first of ArrowFolders() that has it.
  //   FailedPrecondition  it is not there, or can't be opened: says what to do.
  static absl::StatusOr<ArrowLibrary> Open();

  decltype(&parasol_arrow_open) open = nullptr;
  decltype(&parasol_arrow_close) close = nullptr;
  decltype(&parasol_arrow_schema) schema = nullptr;
  decltype(&parasol_arrow_groups) groups = nullptr;
  decltype(&parasol_arrow_rows) rows = nullptr;
  decltype(&parasol_arrow_start) start = nullptr;
  decltype(&parasol_arrow_next) next = nullptr;

  decltype(&parasol_arrow_store) store = nullptr;
  decltype(&parasol_arrow_list) list = nullptr;
  decltype(&parasol_arrow_stat) stat = nullptr;
  decltype(&parasol_arrow_object) object = nullptr;
  decltype(&parasol_arrow_object_close) object_close = nullptr;
  decltype(&parasol_arrow_object_read) object_read = nullptr;
  decltype(&parasol_arrow_write) write = nullptr;
  decltype(&parasol_arrow_remove) remove = nullptr;

  std::string folder;  // Place of the library, and of others that it opens
};

// Returns the folders in which the library is looked for: `named` alone, or if
// that is empty `lib/parasol/arrow` below the prefix that the `program` is
// installed in, if it is, below .local in the folder `home`, unless that is
// empty, and below /usr/local. Pure.
std::vector<std::string> ArrowFolders(absl::string_view named,
                                      absl::string_view program,
                                      absl::string_view home);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_LIBRARY_ARROW_LIBRARY_H_
