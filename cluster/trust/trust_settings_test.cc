#include "cluster/trust/trust_settings.h"

#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TrustSettingsTest, NoFlagIsNoKeys) {
  EXPECT_THAT(TrustSettings().Open(PeerRole::kPs, 0, Clock::Real()),
              IsOkAndHolds(nullptr));
  EXPECT_THAT(
      TrustSettings{.insecure = true}.Open(PeerRole::kPs, 0, Clock::Real()),
      IsOkAndHolds(nullptr));
}

TEST(TrustSettingsTest, FlagsThatDoNotFitTogetherAreNamed) {
  struct Case {
    TrustSettings settings;
    std::string fault;
  };
  const Case cases[] = {
      {{.files = {.certificate = "c"}}, "--tls_ca: missing"},
      {{.files = {.certificate = "c", .authorities = "a"}},
       "--tls_key: missing"},
      {{.files = {.authorities = "a"}}, "--tls_key: missing"},
      {{.files = {"c", "k", "a"}, .token_file = "t"},
       "--token_file=t and --tls_ca: two kinds of keys"},
      {{.token_file = "t", .insecure = true}, "--insecure: this task has keys"},
      {{.token_file = "/nowhere"}, "--token_file: /nowhere: can't be read"},
      {{.files = {"/nowhere", "k", "a"}}, "--tls_certificate=/nowhere"}};
  for (const Case& c : cases) {
    EXPECT_THAT(
        c.settings.Open(PeerRole::kPs, 0, Clock::Real()).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.fault)));
  }
}

TEST(TrustSettingsTest, AnothersCertificateIsRefused) {
  const CertificateDirectory directory("settings", "authority");
  directory.Issue("mnist/worker/0");
  const TrustSettings settings = {.files = directory.files()};
  EXPECT_OK(settings.Open(PeerRole::kWorker, 0, Clock::Real()).status());
  // The chief that worker 0 runs has its files.
  EXPECT_OK(settings.Open(PeerRole::kChief, 0, Clock::Real()).status());
  for (const PeerRole role : {PeerRole::kPs, PeerRole::kOperator}) {
    EXPECT_THAT(settings.Open(role, 0, Clock::Real()).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is worker/0 of mnist, and this process")));
  }
  EXPECT_THAT(settings.Open(PeerRole::kWorker, 1, Clock::Real()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TrustSettingsTest, ChildrenGetTheSameFlags) {
  EXPECT_THAT((TrustSettings{.files = {"c", "k", "a"}}.ToFlags()),
              ElementsAre("--tls_certificate=c", "--tls_key=k", "--tls_ca=a"));
  EXPECT_THAT(TrustSettings{.token_file = "t"}.ToFlags(),
              ElementsAre("--token_file=t"));
  EXPECT_THAT(TrustSettings{.insecure = true}.ToFlags(),
              ElementsAre("--insecure"));
}

TaskConfig ConfigWith(const std::string& ps) {
  TaskConfig config;
  config.cluster = ClusterSpec{
      .jobs = {{Role::kChief, {{0, "127.0.0.1:1"}}}, {Role::kPs, {{0, ps}}}}};
  return config;
}

TEST(CheckMayBeReachedTest, NetworksAreForTasksWithKeysOrInsecureOnes) {
  EXPECT_OK(CheckMayBeReached({}, TaskConfig()));
  EXPECT_OK(CheckMayBeReached({}, ConfigWith("localhost:2")));
  const TaskConfig open = ConfigWith("10.0.0.7:2");
  EXPECT_THAT(
      CheckMayBeReached({}, open),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("ps/0 is at 10.0.0.7:2"),
                     HasSubstr("--token_file"), HasSubstr("--insecure"))));
  EXPECT_OK(CheckMayBeReached({.insecure = true}, open));
  EXPECT_OK(CheckMayBeReached({.token_file = "t"}, open));
}

TEST(CheckMayListenTest, NetworksAreForTasksWithKeysOrInsecureOnes) {
  EXPECT_OK(CheckMayListen({}, "status_address", ""));
  EXPECT_OK(CheckMayListen({}, "status_address", "127.0.0.1:1"));
  EXPECT_THAT(CheckMayListen({}, "status_address", "0.0.0.0:1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--status_address=0.0.0.0:1")));
  EXPECT_OK(CheckMayListen({.insecure = true}, "status_address", "0.0.0.0:1"));
  EXPECT_OK(CheckMayListen({.token_file = "t"}, "status_address", "0.0.0.0:1"));
}

}  // namespace
}  // namespace parasol
