#ifndef PARASOL_DEPLOY_LOCAL_PROGRESS_DISPLAY_H_
#define PARASOL_DEPLOY_LOCAL_PROGRESS_DISPLAY_H_

#include <string>

#include "absl/time/time.h"

namespace parasol {

// Lines for people on stderr. On a terminal the progress is one line that is
// written over; elsewhere (CI, a file) it is a line of its own every five
// seconds. Belongs to one thread.
class ProgressDisplay {
 public:
  // `columns` of a terminal; 0 for anything else.
  explicit ProgressDisplay(int columns) : columns_(columns) {}
  // For this process's stderr as it is.
  static ProgressDisplay ForStderr();

  void ShowProgress(const std::string& line, absl::Time now);
  void Tell(const std::string& line);

  // What ShowProgress and Tell write; "" when it is too early for the next
  // progress line.
  std::string ProgressText(const std::string& line, absl::Time now);
  std::string TellText(const std::string& line);

 private:
  int columns_;
  absl::Time next_ = absl::InfinitePast();
  // The cursor is behind a progress line.
  bool on_progress_line_ = false;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_PROGRESS_DISPLAY_H_
