#ifndef PARASOL_ML_INPUT_FILE_ARRAY_FILES_H_
#define PARASOL_ML_INPUT_FILE_ARRAY_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/input/feature/value.h"
#include "ml/input/file/stored_file.h"
#include "proto/job.pb.h"

namespace parasol {

class TensorReader;

// An array with an element of the first axis for each example: `values`
// numbers, row-major, each as the file has it. Thread-safe.
struct ExampleArray {
  std::string name = {};
  int64_t values = 1;
  // Appends `values` numbers that begin at the address.
  void (*append)(const char* numbers, size_t values,
                 std::vector<FieldValue>& to) = nullptr;
  size_t example_bytes = 0;
  std::string bytes = {};  // bytes of all examples; none if there is `stored`
  // Files with the examples, which stay on the disk, one after the other.
  std::vector<StoredFile> stored = {};

  // Replaces `values_of_example` by the values of an example in memory.
  void Read(int64_t example, std::vector<FieldValue>& values_of_example) const {
    values_of_example.clear();
    append(bytes.data() + example * example_bytes, values, values_of_example);
  }
};

// An array as the headers of its files describe it.
struct ListedArray {
  std::string name = {};
  std::vector<int64_t> shape = {};  // shape of one example
  int64_t examples = 0;             // number of them in all files
  size_t example_bytes = 0;
  // Reason why the array can't be read: the type of its elements, or files
  // that do not fit together. Empty: it can.
  std::string fault = {};
  // Number of the first example of each of its files, then of all examples.
  std::vector<int64_t> file_starts = {};
};

// The arrays in a data set's NumPy files. Those without an axis are left out.
// Not thread-safe.
class ArrayFiles {
 public:
  // Finds the files, whose paths are relative to `data_dir`, and reads their
  // headers.
  //   NotFound, DataLoss, …  as for FindFiles(), OpenNpz() and OpenNpy().
  //   InvalidArgument        two arrays have one name; or there is none.
  static absl::StatusOr<ArrayFiles> Open(const job::ArrayDataset& dataset,
                                         const std::string& data_dir);

  const std::vector<ListedArray>& arrays() const { return arrays_; }
  // Returns the array, or nullptr.
  const ListedArray* Find(const std::string& name) const;
  // Returns the path of the first file, for messages.
  const std::string& first() const { return files_.front().path; }

  // Reads the first `examples` examples of the arrays with these names, which
  // have as many and no fault, in the order of the names.
  //   DataLoss  a file is damaged, or has changed since it was opened.
  absl::StatusOr<std::vector<ExampleArray>> Read(
      const std::vector<std::string>& names, int64_t examples) const;

  // Finds all examples of these arrays where they stay on the disk, as
  // ExampleArray::stored. Archives are read once, for their checksums, and
  // arrays that are compressed are unpacked.
  //   DataLoss         as for Read().
  //   InvalidArgument  there is no room for what is unpacked.
  absl::StatusOr<std::vector<ExampleArray>> Store(
      const std::vector<std::string>& names) const;

 private:
  struct File {
    std::string path = {};
    std::string name = {};  // name of an .npy's array; empty: an .npz
  };

  using VisitPart =
      absl::FunctionRef<absl::Status(const File& file, TensorReader& reader,
                                     size_t tensor, ExampleArray& array)>;

  // Visits the arrays in each file.
  absl::Status ForEachPart(std::vector<ExampleArray>& arrays,
                           VisitPart visit) const;
  absl::Status HasChanged(const std::string& name) const;
  // The arrays with these names, without examples.
  std::vector<ExampleArray> Named(const std::vector<std::string>& names) const;
  ListedArray& Add(ListedArray array);
  absl::Status AddArchives(const job::ArrayDataset& dataset,
                           const std::string& data_dir);
  absl::Status AddNamed(const job::NamedArray& array,
                        const std::string& data_dir);

  std::vector<File> files_;
  std::vector<ListedArray> arrays_;
  std::map<std::string, size_t> places_;  // places in arrays_
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_ARRAY_FILES_H_
