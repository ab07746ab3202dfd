#include "base/log.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/alarm_thread.h"
#include "base/log_fields.h"

namespace parasol {
namespace {

struct Configuration {
  LogFormat format = LogFormat::kText;
  std::string task;
};

ABSL_CONST_INIT absl::Mutex configuration_mu(absl::kConstInit);

Configuration& MutableConfiguration() {
  static auto* configuration = new Configuration;
  return *configuration;
}

absl::string_view Name(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::kInfo:
      return "INFO";
    case LogSeverity::kWarning:
      return "WARNING";
    case LogSeverity::kError:
      return "ERROR";
    case LogSeverity::kFatal:
      return "FATAL";
  }
  return "UNKNOWN";
}

// Control characters are escaped, so that a message stays on its line.
std::string Escaped(absl::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&escaped, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

absl::string_view Basename(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

void ConfigureLog(LogFormat format, absl::string_view task) {
  absl::MutexLock lock(&configuration_mu);
  MutableConfiguration() = {format, std::string(task)};
}

std::string FormatLogLine(LogFormat format, absl::string_view task,
                          absl::Time time, LogSeverity severity,
                          absl::string_view file, int line,
                          absl::string_view message) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const std::string source = absl::StrCat(Basename(file), ":", line);
  if (format == LogFormat::kJson) {
    return absl::StrCat(
        "{\"time\":\"", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, utc),
        "\",\"severity\":\"", Name(severity), "\"",
        task.empty() ? "" : absl::StrCat(",\"task\":", JsonText(task)),
        ",\"source\":", JsonText(source), ",\"message\":", JsonText(message),
        "}");
  }
  return absl::StrCat(Name(severity).substr(0, 1),
                      absl::FormatTime("%m%d %H:%M:%E6S ", time, utc), task,
                      task.empty() ? "" : " ", source, "] ", Escaped(message));
}

namespace internal {

LogMessage::~LogMessage() {
  Configuration configuration;
  {
    absl::MutexLock lock(&configuration_mu);
    configuration = MutableConfiguration();
  }
  std::string text =
      FormatLogLine(configuration.format, configuration.task, absl::Now(),
                    severity_, file_, line_, stream_.str());
  if (configuration.format == LogFormat::kJson) {
    text.insert(text.size() - 1, LogFieldsIn(stream_));
  }
  text += '\n';
  // A log that can't be written has nowhere to say so.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text.data(), text.size());
  if (severity_ == LogSeverity::kFatal) abort();
}

bool ShouldLog(absl::Duration period, int64_t* last_nanos) {
  const int64_t now = MonotonicNanos();
  int64_t last = __atomic_load_n(last_nanos, __ATOMIC_RELAXED);
  if (last != 0 && now - last < absl::ToInt64Nanoseconds(period)) return false;
  return __atomic_compare_exchange_n(last_nanos, &last, now, /*weak=*/false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

}  // namespace internal
}  // namespace parasol
