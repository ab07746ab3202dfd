#ifndef PARASOL_CLUSTER_CHECK_DATA_CHECK_H_
#define PARASOL_CLUSTER_CHECK_DATA_CHECK_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/check/column_uses.h"
#include "cluster/check/job_report.h"
#include "cluster/check/label_values.h"
#include "ml/input/feature/batch.h"
#include "ml/input/format/raw_columns.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// A check of a job's data sets: what they have, and whether it is what the job
// says. Reads each data set twice: the columns as they are, and the examples as
// the model sees them. Not thread-safe.
class DataCheck {
 public:
  struct Options {
    std::string data_dir = {};
    // Statistics are of this number of examples, the first ones.
    int64_t max_examples = 0;
    // Bytes of each data set that are read, for a sample; 0: all. A data source
    // of a user's own is then left out, for it would be read whole.
    int64_t sample_bytes = 0;
    // True if what needs code that this program lacks is to be left out.
    bool code_is_elsewhere = false;
  };

  // Borrows `job`, with its defaults, and `graph`, its model; null if that is
  // not known, as it has a fault: then examples are not made.
  DataCheck(const job::Job& job, const Graph* graph, Options options)
      : job_(job), graph_(graph), options_(std::move(options)) {}

  // Checks `dataset`, the job's `name` ("train").
  void Check(const std::string& name, const job::Dataset& dataset);

  // Adds what only all data sets together show. Must be called once, last.
  void Finish();

  // Faults as "<field path>: …", warnings, data sets, and of the training data
  // the normalizations.
  const JobReport& found() const { return found_; }
  // Bytes that the data sets take in memory, but for what unpacking adds.
  int64_t memory_bytes() const { return memory_bytes_; }
  // Number of distinct ids of each of the graph's tables, up to a limit.
  std::vector<int64_t> DistinctIds() const;
  // How often the most frequent id of each of the tables comes in the training
  // data that were looked at; INT64_MAX where there are too many to count.
  // Empty without examples.
  std::vector<int64_t> MostOfAnId() const;

 private:
  std::vector<std::string> WantedColumns(const std::string& name,
                                         const job::Dataset& dataset) const;
  bool FindAllFiles(const std::string& name, const job::Dataset& dataset);
  bool HasNames(const std::vector<ColumnUse>& uses, const std::string& name,
                const job::Dataset& dataset,
                const std::vector<std::string>& columns);
  void ReadColumns(const std::vector<ColumnUse>& uses, const std::string& name,
                   const job::Dataset& dataset, RawColumns& columns,
                   DatasetReport& report);
  void Normalize(const std::vector<ColumnUse>& uses, const std::string& name,
                 const std::vector<NumberStatistics>& transformed);
  absl::Status ReadExamples(const std::string& name,
                            const job::Dataset& dataset, DatasetReport& report);
  void AddBatch(const Batch& batch, DatasetReport& report);
  void AddLabels(const Batch& batch, size_t output, LabelsReport& report);
  void AddPixels(const Batch& batch);
  void NormalizeImages(const std::string& name, const job::Dataset& dataset);
  bool CheckColumns(const std::string& name, const job::Dataset& dataset,
                    RawColumns& columns, DatasetReport& report);
  bool IsLeftOut(const absl::Status& status) const;
  void WarnOfClasses(const DatasetReport& report);
  void Fault(const std::string& path, const std::string& what);

  const job::Job& job_;
  const Graph* const graph_;
  const Options options_;
  JobReport found_;
  std::set<std::string> faulty_;  // paths
  int64_t memory_bytes_ = 0;
  bool is_partial_ = false;  // columns were not read to their end
  // Values of the columns of labels, of all data sets, by column.
  std::map<std::string, LabelValues> label_values_;
  // How labels are made, by path: of a job's data sets one may have other texts
  // than the other.
  std::vector<LabelUse> labels_;
  std::vector<NumberStatistics> channels_;  // channels of images
  // How often each id comes in the training data, by table.
  std::vector<absl::flat_hash_map<uint64_t, int64_t>> ids_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_DATA_CHECK_H_
