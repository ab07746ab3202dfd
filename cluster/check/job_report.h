#ifndef PARASOL_CLUSTER_CHECK_JOB_REPORT_H_
#define PARASOL_CLUSTER_CHECK_JOB_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parasol {

// Sums over numbers, for their mean and deviation.
struct NumberStatistics {
  int64_t count = 0;
  double mean = 0;
  double squares = 0;  // sum of the squared distances from the mean
  double min = 0;
  double max = 0;

  void Add(double number);
  // The standard deviation of the population; 0 without numbers.
  double stddev() const;
  // False if some are beyond 2^53, where different integers are the same
  // float64: mean and deviation say nothing of them then.
  bool is_exact() const;
};

struct ClassShare {
  std::string name =
      {};  // the class's number, with its text where there is one
  int64_t examples = 0;
};

// A column of a data set's files.
struct ColumnReport {
  std::string name = {};
  // Use that the job makes of it: "label", "weight", inputs that read it, "".
  std::string use = {};
  int64_t records = 0;  // number that was looked at
  int64_t missing = 0;
  NumberStatistics numbers = {};  // statistics of values that are numbers
  int64_t texts = 0;              // values that are none
  // True if a number beyond 2^53 is no integer: it has no digits to lose.
  bool has_large_reals = false;
  // Number of different values of a column of ids or labels, of others of
  // different texts; `distinct_is_least`: or more.
  int64_t distinct = 0;
  bool distinct_is_least = false;
  std::vector<ClassShare> frequent = {};  // the most frequent of these

  // True if the values are told apart by their texts, and as numbers would not
  // be.
  bool has_ids_only() const {
    return distinct > 0 && texts == 0 && !numbers.is_exact() &&
           !has_large_reals;
  }
};

// The labels that a model, or one of its named outputs, is compared with.
struct LabelsReport {
  std::string output = {};               // empty: the model has no names
  int64_t examples = 0;                  // number of those that count
  std::vector<ClassShare> classes = {};  // classes, if labels are such
  NumberStatistics numbers = {};         // labels, if they are numbers
};

// A data set as the model sees it.
struct DatasetReport {
  std::string name = {};  // "train", "eval"
  int64_t examples = 0;
  // Number of examples that the statistics are of: all, or the first ones.
  int64_t looked_at = 0;
  int64_t skipped = 0;  // corrupt records that are left out
  // True if only a sample was read: the files have more than `examples`.
  bool is_sample = false;
  std::vector<ColumnReport> columns = {};
  std::vector<LabelsReport> labels = {};  // one for each of the outputs
  std::vector<std::string> rows = {};     // the first examples

  // True if statistics leave out examples.
  bool is_partial() const {
    return is_sample || looked_at + skipped < examples;
  }
};

// Fields that would make a column's values have mean 0 and deviation 1.
struct Normalization {
  // Path in the file of what lacks the fields, or of the pattern below.
  std::string path = {};
  std::string column = {};  // name for people
  // The pattern that stands there for this column and others; may be empty.
  std::string pattern = {};
  std::vector<double> mean = {};
  std::vector<double> stddev = {};  // one, or one for each channel
};

// A vocabulary that a column of ids may have.
struct VocabularyChange {
  std::string path = {};  // path of the column, "model.input[0].ids.column[1]"
  std::string column = {};
  // True: takes the place of a hash; false: values that a vocabulary lacks.
  bool replaces_hash = false;
  std::vector<std::string> values = {};
};

// A pattern of columns in the job, and the columns that it stands for.
struct PatternReport {
  std::string path = {};  // "model.input[0].dense.column[1]"
  std::string pattern = {};
  std::vector<std::string> columns = {};
};

struct RoleMemory {
  std::string role = {};  // "ps/0"
  int64_t bytes = 0;
  std::string parts = {};  // names of the parts, for people
};

// All that a check has found.
struct JobReport {
  std::vector<std::string> faults = {};    // one line each, with the place
  std::vector<std::string> warnings = {};  // one line each
  std::vector<PatternReport> patterns = {};
  std::vector<DatasetReport> data_sets = {};
  std::vector<Normalization> normalizations = {};
  std::vector<VocabularyChange> vocabularies = {};
  std::optional<int64_t> end_step = {};
  std::string end = {};  // how the steps come about, for people
  std::vector<RoleMemory> memory = {};
};

// Returns the report as lines for people, and as one JSON object.
std::string ToText(const JobReport& report);
std::string ToJson(const JobReport& report);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_JOB_REPORT_H_
