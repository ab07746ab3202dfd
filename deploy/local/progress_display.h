#ifndef PARASOL_DEPLOY_LOCAL_PROGRESS_DISPLAY_H_
#define PARASOL_DEPLOY_LOCAL_PROGRESS_DISPLAY_H_

#include <string>

#include "absl/time/time.h"

namespace parasol {

// Writes lines for people to stderr. On a terminal the progress is one line
// that is overwritten; elsewhere (CI, a file) it is a line of its own every
// five seconds. Must be used from one thread.
class ProgressDisplay {
 public:
  // `columns` is the width of the terminal; 0 if stderr is not a terminal.
  explicit ProgressDisplay(int columns) : columns_(columns) {}
  // Returns a display for this process's stderr, terminal or not.
  static ProgressDisplay ForStderr();

  void ShowProgress(const std::string& line, absl::Time now);
  void Tell(const std::string& line);
  // Takes the progress line away, so that others may write to stderr.
  void End();

  // Return the text that ShowProgress(), Tell() and End() write; "" if it is
  // too early for the next progress line, or if there is none to take away.
  std::string ProgressText(const std::string& line, absl::Time now);
  std::string TellText(const std::string& line);
  std::string EndText();

 private:
  int columns_;
  absl::Time next_ = absl::InfinitePast();
  // True if the cursor is behind a progress line.
  bool on_progress_line_ = false;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_PROGRESS_DISPLAY_H_
