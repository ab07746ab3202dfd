#ifndef PARASOL_CLUSTER_JOB_CHECK_JOB_H_
#define PARASOL_CLUSTER_JOB_CHECK_JOB_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/job/column_patterns.h"
#include "cluster/job/syntax/job_text.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// One fault of a job.
struct JobFault {
  // "job.textproto:12:5", or the file alone where the fault is of no place.
  std::string place;
  // One line: "<field path>: what is wrong, with the value".
  std::string message;

  std::string Line() const { return place + ": " + message; }
};

// A job file with all that is wrong with it.
class CheckedJob {
 public:
  // Reads the file at `path`, applies `overrides` ("end.epochs=1"), resolves
  // patterns of columns by the data in `data_dir`, fills in the defaults and
  // checks all of it, as LoadJobFile() does, but goes on behind a fault. Data
  // are opened for such patterns alone.
  //   NotFound, InvalidArgument  the file can't be read.
  static absl::StatusOr<CheckedJob> Read(
      const std::string& path, absl::Span<const std::string> overrides,
      const std::string& data_dir = "");

  // Adds a fault that was found elsewhere, "<field path>: …", unless it is a
  // consequence of one of the text. The path is one of job(); a column that a
  // pattern stands for is shown as the pattern.
  void AddFault(absl::string_view message);

  // Returns the faults in the order of the file; those without a place come
  // last.
  std::vector<JobFault> faults() const;

  // The patterns of columns in the file.
  const ColumnPatterns& patterns() const { return patterns_; }

  // The file's text as it is.
  const std::string& text() const { return text_; }
  // The job with its defaults, and with the name that was meant where that is
  // clear; nullopt if the text is no job at all.
  const std::optional<job::Job>& job() const { return job_; }
  // The model of job(); nullopt if it has a fault, other than a name whose
  // meaning is clear.
  const std::optional<Graph>& graph() const { return graph_; }

 private:
  struct Found {
    std::optional<TextPlace> place;
    std::string message;
  };

  // Adds a fault with a path of the file.
  void AddFileFault(absl::string_view message);

  std::string path_;
  std::string text_;
  JobText parsed_;
  std::optional<job::Job> job_;
  ColumnPatterns patterns_;
  // Paths of the inputs with patterns at fault: other faults there are
  // consequences.
  std::vector<std::string> faulty_inputs_;
  std::optional<Graph> graph_;
  std::vector<Found> found_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_CHECK_JOB_H_
