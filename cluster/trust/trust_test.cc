#include "cluster/trust/trust.h"

#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/trust/certificate_files.h"
#include "cluster/trust/job_token.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::Eq;
using testing::HasSubstr;

TEST(TrustTest, FilesSayWhoTheProcessIs) {
  const CertificateDirectory directory("files", "authority");
  directory.Issue("mnist/ps/1");
  ASSERT_OK_AND_ASSIGN(const auto trust,
                       Trust::OfFiles(directory.files(), Clock::Real()));
  EXPECT_THAT(
      trust->identity(),
      Eq(PeerIdentity{.job = "mnist", .role = PeerRole::kPs, .index = 1}));
  EXPECT_TRUE(trust->encrypts_all());
}

TEST(TrustTest, FilesOfNoUseAreNamed) {
  const CertificateDirectory directory("no_use", "authority");
  directory.Issue("mnist/ps/1");
  const CertificateFiles good = directory.files();
  const CertificateDirectory other("other", "another authority");
  other.Issue("mnist/ps/1");
  struct Case {
    CertificateFiles files;
    std::string fault;
  };
  const Case cases[] = {
      {{"/nowhere", good.key, good.authorities}, "--tls_certificate=/nowhere"},
      {{good.certificate, "/nowhere", good.authorities}, "--tls_key=/nowhere"},
      {{good.certificate, good.key, "/"}, "--tls_ca=/"},
      {{good.certificate, other.files().key, good.authorities},
       "the key is not the certificate's"},
      {{good.certificate, good.key, other.files().authorities},
       "another authority"}};
  for (const Case& c : cases) {
    EXPECT_THAT(
        Trust::OfFiles(c.files, Clock::Real()).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.fault)));
  }
}

TEST(TrustTest, TokenSaysWhoTheProcessIs) {
  const JobToken token = JobToken::Parse("0123456789abcdef").value();
  const auto trust = Trust::OfToken(token, PeerRole::kWorker, 2, Clock::Real());
  EXPECT_THAT(trust->identity(), Eq(PeerIdentity{.job = token.JobName(),
                                                 .role = PeerRole::kWorker,
                                                 .index = 2}));
  EXPECT_FALSE(trust->encrypts_all());
}

}  // namespace
}  // namespace parasol
