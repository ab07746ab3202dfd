#ifndef PARASOL_CLUSTER_CHECK_LIST_COLUMNS_H_
#define PARASOL_CLUSTER_CHECK_LIST_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/check/column_uses.h"
#include "ml/input/feature/value.h"
#include "proto/job.pb.h"

namespace parasol {

// The columns of a data set that are lists, of which a job's inputs make
// sequences, and how long the lists are. Pure. Not thread-safe.
class ListColumns {
 public:
  // `names` are the data set's columns; the job behind `uses` outlives this.
  ListColumns(const std::vector<ColumnUse>& uses, const job::Dataset& dataset,
              const std::vector<std::string>& names);

  // Counts a record's lists. A list that is one text of a line of values is
  // replaced by its values, which borrow the text's bytes.
  void Take(ColumnValues& row);

  // Returns what is odd about the lists of the records so far: all are empty,
  // many are cut, or none has a separator.
  std::vector<std::string> Warnings() const;

 private:
  struct List {
    size_t column = 0;
    std::string name = {};
    std::string path = {};
    const job::IdSequence* sequence = nullptr;
    int64_t lists = 0;
    int64_t empty = 0;
    int64_t cut = 0;
    int64_t longest = 0;
  };

  std::string WarningOf(const List& list) const;

  // The form of lines of values, if the data set has them.
  std::optional<job::CsvDataset> csv_;
  std::vector<List> lists_;
  std::vector<FieldValue> split_;  // memory of Take()
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_LIST_COLUMNS_H_
