#ifndef PARASOL_CLUSTER_CHECK_LABEL_VALUES_H_
#define PARASOL_CLUSTER_CHECK_LABEL_VALUES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol {

// The texts of a label column, counted, as a job of `positive` and `class`
// names may be misspelt. Not thread-safe.
class LabelValues {
 public:
  // Counts a value; beyond 1,000 different ones no more are told apart.
  void Add(absl::string_view value);

  // A name that no value is.
  struct Unseen {
    std::string name;
    std::string line;  // "<path>: …"
  };

  // Returns each name in `label` that no value is. `path` is the path of
  // `label`, "train.csv.label".
  std::vector<Unseen> NeverSeen(const std::string& path,
                                const job::CsvLabel& label) const;

 private:
  std::string Line(const std::string& path, const std::string& name,
                   const std::string& column) const;

  std::map<std::string, int64_t, std::less<>> counts_;
  int64_t others_ = 0;
  int64_t all_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_LABEL_VALUES_H_
