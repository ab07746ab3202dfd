#include "base/log.h"

#include <cmath>

#include "absl/time/time.h"
#include "base/log_fields.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::EndsWith;

const absl::Time kTime = absl::FromUnixMicros(1700000000123456);

TEST(LogTest, TextLineNamesSeverityTimeTaskAndSource) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, "worker/1", kTime,
                          LogSeverity::kWarning, "worker/loop.cc", 42, "slow"),
            "W1114 22:13:20.123456 worker/1 loop.cc:42] slow");
}

TEST(LogTest, JsonLineEscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, "ps/0", kTime, LogSeverity::kError,
                          "a.cc", 1, "say \"x\\y\"\n\x01"),
            R"({"time":"2023-11-14T22:13:20.123456Z","severity":"ERROR",)"
            R"("task":"ps/0","source":"a.cc:1",)"
            R"("message":"say \"x\\y\"\n\u0001"})");
}

TEST(LogTest, JsonLineReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(JsonText("a\xC3\xA4\xFF\xE2\x82 \xED\xA0\x80z"),
            "\"a\xC3\xA4\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD "
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

TEST(LogTest, FieldsAreInJsonAndNotInText) {
  const LogFields fields = LogFields()
                               .AddCount("step", 12)
                               .AddNumber("loss", 0.25)
                               .AddNumber("auc", NAN)
                               .AddText("phase", "\"x\"");
  const auto log = [&fields](LogFormat format) {
    testing::internal::CaptureStderr();
    ConfigureLog(format, "");
    LOG(INFO) << "step 12" << fields << ", loss"
              << LogFields().AddCount("n", 1);
    ConfigureLog(LogFormat::kText, "");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log(LogFormat::kJson),
              EndsWith("\"message\":\"step 12, loss\",\"step\":12,"
                       "\"loss\":0.25,\"auc\":null,"
                       "\"phase\":\"\\\"x\\\"\",\"n\":1}\n"));
  EXPECT_THAT(log(LogFormat::kText), EndsWith("] step 12, loss\n"));
}

TEST(LogTest, TextMessageStaysOnOneLine) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, "", kTime, LogSeverity::kInfo,
                          "a.cc", 1, "two\nlines"),
            "I1114 22:13:20.123456 a.cc:1] two\\nlines");
}

TEST(LogTest, PeriodicLineIsDueOncePerPeriod) {
  int64_t last = 0;
  EXPECT_TRUE(internal::ShouldLog(absl::Hours(1), &last));
  EXPECT_FALSE(internal::ShouldLog(absl::Hours(1), &last));
  EXPECT_TRUE(internal::ShouldLog(absl::ZeroDuration(), &last));
}

TEST(LogDeathTest, FailedCheckPrintsTheValues) {
  const int shards = 2;
  EXPECT_DEATH(CHECK_EQ(shards, 3) << "placement", "2 vs 3.*placement");
}

}  // namespace
}  // namespace parasol
