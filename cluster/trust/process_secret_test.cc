#include "cluster/trust/process_secret.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kPs = 0x123456789abcdef1;

TEST(ProcessSecretTest, APublicNumberTellsProcessesApart) {
  EXPECT_EQ(PublicNumber(kPs), PublicNumber(kPs));
  std::set<uint64_t> numbers;
  for (uint64_t ps = 0; ps < 1000; ++ps) numbers.insert(PublicNumber(ps));
  EXPECT_EQ(numbers.size(), 1000);
  EXPECT_FALSE(numbers.contains(0));
}

TEST(ProcessSecretTest, AnAdmissionSaysWhichWorkerItAdmits) {
  for (const AdmittedWorker& worker :
       {AdmittedWorker{0, 1}, AdmittedWorker{17, UINT64_MAX}}) {
    EXPECT_THAT(ReadAdmission(AdmissionOf(worker, kPs), kPs),
                IsOkAndHolds(worker));
  }
}

TEST(ProcessSecretTest, AnAdmissionHoldsForOneWorkerAndOneProcess) {
  const std::string admission =
      AdmissionOf({.index = 1, .incarnation = 7}, kPs);
  EXPECT_THAT(ReadAdmission(admission, kPs + 2),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("no admission to this process of the ps")));
  for (size_t i = 0; i < admission.size(); ++i) {
    std::string changed = admission;
    changed[i] = changed[i] == '2' ? '3' : '2';
    EXPECT_THAT(ReadAdmission(changed, kPs),
                StatusIs(absl::StatusCode::kPermissionDenied))
        << changed;
  }
}

TEST(ProcessSecretTest, NonsenseIsNoAdmission) {
  const std::string admission =
      AdmissionOf({.index = 1, .incarnation = 7}, kPs);
  for (const std::string& nonsense :
       {std::string(), std::string("...."), std::string("worker.1.7."),
        std::string("worker.1.7"), absl::StrCat(admission, "."),
        absl::StrCat(" ", admission), admission.substr(0, 20),
        std::string("worker.99999999999.7.00"), std::string(100000, '.')}) {
    EXPECT_THAT(ReadAdmission(nonsense, kPs),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
}

}  // namespace
}  // namespace parasol
