#ifndef PARASOL_ML_INPUT_FORMAT_CUSTOM_SOURCE_H_
#define PARASOL_ML_INPUT_FORMAT_CUSTOM_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/example_set.h"
#include "ml/input/format/raw_columns.h"
#include "proto/job.pb.h"

// Data sources that users write (docs/examples/custom_model): another format of
// files, or data from elsewhere. Worker, evaluator and the tool `parasol` are
// linked with the code.
namespace parasol {

// The examples of a data set, numbered from 0, each with values of named
// columns, from which the model's inputs are made as from a CSV file's. Order,
// shards, splits, exact epochs and resuming go by the numbers, so every process
// must see the same examples under the same numbers. Thread-safe.
class ExampleSource {
 public:
  // Reads examples, with memory of its own. For one thread.
  class Reader {
   public:
    virtual ~Reader() = default;

    // Replaces the values of `row`, one list for each of columns(), whose lists
    // are empty, by an example's. A column that stays empty is missing. Texts
    // are valid until the next call.
    //   DataLoss  the example is corrupt: names the file and the place. Unless
    //             the job skips corrupt examples, the program ends.
    virtual absl::Status Read(int64_t example, ColumnValues& row) = 0;
  };

  virtual ~ExampleSource() = default;

  // Names of all columns, label and weight included, each once.
  virtual const std::vector<std::string>& columns() const = 0;

  // Column of the label, one number or as many as the loss asks for; not read
  // for a model with named outputs, whose labels are columns that the job
  // names. Empty: there is none.
  virtual std::string label() const = 0;

  // Column of the examples' weights; empty: each is 1.
  virtual std::string weight() const { return ""; }

  // Number of each file's first example, then the number of all examples: at
  // least {0, examples}. Workers that share by files share these.
  virtual const std::vector<int64_t>& file_starts() const = 0;

  virtual std::unique_ptr<Reader> NewReader() const = 0;
};

// Files and settings that a source is made of.
struct SourceOptions {
  // The job's files, found: paths that can be opened, in their order. Empty if
  // the job lists none.
  std::vector<std::string> files;
  std::string data_dir;
  // True if corrupt examples are to be refused by the reader, one by one;
  // otherwise what is corrupt may be an error at once.
  bool skip_corrupt = false;
};

// A function that opens a source.
//   InvalidArgument  the parameters or the files do not suit it: says why.
//   DataLoss         a file is corrupt: names it.
using ExampleSourceFactory =
    std::function<absl::StatusOr<std::unique_ptr<const ExampleSource>>(
        const job::CustomDataset& spec, const SourceOptions& options)>;

// Registers a source in this program as `type`, at namespace scope of its own
// file:
//
//   const ExampleSourceRegistration kRegistration("vectors", OpenVectors);
//
// Two sources of one type are a bug. Only for use before main().
class ExampleSourceRegistration {
 public:
  ExampleSourceRegistration(absl::string_view type,
                            ExampleSourceFactory factory);
};

// Opens a source as a set of examples.
//   FailedPrecondition  this program does not have the code: names the sources
//                       that it has.
//   InvalidArgument     the label, the weight or an input names a column that
//                       does not exist.
//   any other           as for FindFiles and the source's function.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCustomSet(
    const job::CustomDataset& custom, const SetOptions& options);

// Returns the columns of the source, and which of them are its label and its
// weight. Errors as for OpenCustomSet() before any column is looked at.
absl::StatusOr<Columns> ReadCustomColumns(const job::CustomDataset& custom,
                                          const std::string& data_dir);

// Opens the same examples as they are. Those that can't be read are errors of
// RawColumns::Read().
absl::StatusOr<std::unique_ptr<RawColumns>> OpenCustomColumns(
    const job::CustomDataset& custom, const std::string& data_dir);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_CUSTOM_SOURCE_H_
