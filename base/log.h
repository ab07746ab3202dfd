#ifndef PARASOL_BASE_LOG_H_
#define PARASOL_BASE_LOG_H_

#include <ostream>
#include <sstream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// LOG(INFO) << …;     also WARNING, ERROR. One line on stderr.
// LOG(FATAL) << …;    the same, then aborts.
// CHECK(condition) << …;  CHECK_EQ(a, b) …  abort when our own invariant is
//   broken. Never for bytes from a network, file or environment.
// LOG_EVERY(INFO, absl::Seconds(10)) << …;  at most once per period from this
//   line of code, in the whole process.
//
// Thread-safe; a line is written with one write(2).
//
// Text:  I1120 23:17:03.123456 worker/1 training_loop.cc:42] message
// JSON:  {"time":"2026-11-20T23:17:03.123456Z","severity":"INFO",
//         "task":"worker/1","source":"training_loop.cc:42","message":"…"}
namespace parasol {

enum class LogSeverity { kInfo, kWarning, kError, kFatal };
enum class LogFormat { kText, kJson };

// Sets the format of all lines logged from now on. `task` names this process in
// every line ("worker/1"); an empty name is left out.
void ConfigureLog(LogFormat format, absl::string_view task);

// Returns one log line without its newline. Control characters in `message` are
// escaped in both formats, so that a line stays one line.
std::string FormatLogLine(LogFormat format, absl::string_view task,
                          absl::Time time, LogSeverity severity,
                          absl::string_view file, int line,
                          absl::string_view message);

namespace internal {

// Collects one message and writes it when it goes out of scope.
class LogMessage {
 public:
  LogMessage(LogSeverity severity, const char* file, int line)
      : severity_(severity), file_(file), line_(line) {}
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  ~LogMessage();

  std::ostream& stream() { return stream_; }

 private:
  const LogSeverity severity_;
  const char* const file_;
  const int line_;
  std::ostringstream stream_;
};

// Returns true if `period` has passed since the call for `last` last returned
// true.
bool ShouldLog(absl::Duration period, int64_t* last_nanos);

// Turns `stream << …` into a void expression for the macros below.
struct Voidify {
  void operator&(std::ostream&) {}
};

}  // namespace internal
}  // namespace parasol

#define PARASOL_SEVERITY_INFO ::parasol::LogSeverity::kInfo
#define PARASOL_SEVERITY_WARNING ::parasol::LogSeverity::kWarning
#define PARASOL_SEVERITY_ERROR ::parasol::LogSeverity::kError
#define PARASOL_SEVERITY_FATAL ::parasol::LogSeverity::kFatal

#define LOG(severity)                                                    \
  ::parasol::internal::LogMessage(PARASOL_SEVERITY_##severity, __FILE__, \
                                  __LINE__)                              \
      .stream()

#define LOG_EVERY(severity, period)                              \
  for (static int64_t parasol_last = 0;                          \
       ::parasol::internal::ShouldLog((period), &parasol_last);) \
  LOG(severity)

#define CHECK(condition)                         \
  (condition) ? (void)0                          \
              : ::parasol::internal::Voidify() & \
                    LOG(FATAL) << "check failed: " #condition " "

#define PARASOL_CHECK_OP_(a, op, b)                                      \
  ((a)op(b)) ? (void)0                                                   \
             : ::parasol::internal::Voidify() &                          \
                   LOG(FATAL) << "check failed: " #a " " #op " " #b " (" \
                              << (a) << " vs " << (b) << ") "

#define CHECK_EQ(a, b) PARASOL_CHECK_OP_(a, ==, b)
#define CHECK_NE(a, b) PARASOL_CHECK_OP_(a, !=, b)
#define CHECK_LT(a, b) PARASOL_CHECK_OP_(a, <, b)
#define CHECK_LE(a, b) PARASOL_CHECK_OP_(a, <=, b)
#define CHECK_GT(a, b) PARASOL_CHECK_OP_(a, >, b)
#define CHECK_GE(a, b) PARASOL_CHECK_OP_(a, >=, b)

#endif  // PARASOL_BASE_LOG_H_
