#include "deploy/local/progress_display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr absl::Duration kTerminalPeriod = absl::Milliseconds(200);
constexpr absl::Duration kFilePeriod = absl::Seconds(5);
// Back to the first column, and clear to the end of the line.
constexpr char kEraseLine[] = "\r\x1b[K";

void Write(const std::string& text) {
  fputs(text.c_str(), stderr);
  fflush(stderr);
}

// As much of `line` as fits: one that wraps can't be written over. Ends with a
// whole part of the line, two spaces being between parts.
std::string Fitting(const std::string& line, size_t columns) {
  if (line.size() <= columns) return line;
  const size_t end = line.rfind("  ", columns);
  return line.substr(0, end == std::string::npos ? columns : end);
}

}  // namespace

ProgressDisplay ProgressDisplay::ForStderr() {
  winsize size = {};
  if (!isatty(STDERR_FILENO)) return ProgressDisplay(0);
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return ProgressDisplay(80);
  }
  return ProgressDisplay(size.ws_col);
}

void ProgressDisplay::ShowProgress(const std::string& line, absl::Time now) {
  Write(ProgressText(line, now));
}

void ProgressDisplay::Tell(const std::string& line) { Write(TellText(line)); }

void ProgressDisplay::End() { Write(EndText()); }

std::string ProgressDisplay::ProgressText(const std::string& line,
                                          absl::Time now) {
  if (now < next_) return "";
  next_ = now + (columns_ > 0 ? kTerminalPeriod : kFilePeriod);
  if (columns_ == 0) return absl::StrCat(line, "\n");
  on_progress_line_ = true;
  return absl::StrCat(kEraseLine, Fitting(line, columns_ - 1));
}

std::string ProgressDisplay::TellText(const std::string& line) {
  return absl::StrCat(EndText(), line, "\n");
}

std::string ProgressDisplay::EndText() {
  const char* const erase = on_progress_line_ ? kEraseLine : "";
  on_progress_line_ = false;
  return erase;
}

}  // namespace parasol
