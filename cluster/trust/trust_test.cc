#include "cluster/trust/trust.h"

#include <sys/socket.h>

#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
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

// Returns what a worker hears of a ps's certificate, of whom it expects ps/1 of
// mnist: OK if the ps has that now.
absl::Status CallPs(const Trust& ps) {
  const CertificateDirectory directory("caller", "authority");
  directory.Issue("mnist/worker/7");
  const auto worker = Trust::OfFiles(directory.files(), Clock::Real()).value();
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const auto client = worker->BeginTls(Descriptor(ends[0]), PeerSide::kClient,
                                       {PeerRole::kPs, 1});
  const auto server = ps.BeginTls(Descriptor(ends[1]), PeerSide::kServer,
                                  {PeerRole::kWorker, 7});
  // A handshake has two turns of the client.
  for (int turn = 0; turn < 3 && !client->has_peer(); ++turn) {
    RETURN_IF_ERROR(client->Send({}).status());
    server->Send({}).IgnoreError();
  }
  return client->has_peer() ? absl::OkStatus()
                            : absl::UnavailableError("no handshake");
}

TEST(TrustTest, FilesThatAreReadAgainAreTakenIfTheyAreOfUse) {
  const CertificateDirectory directory("again", "authority");
  directory.Issue("mnist/ps/1");
  ASSERT_OK_AND_ASSIGN(const auto trust,
                       Trust::OfFiles(directory.files(), Clock::Real()));
  ASSERT_OK(CallPs(*trust));
  const auto still_serves = [&] {
    trust->Reread();
    return CallPs(*trust);
  };
  directory.Write(directory.files().key, "-----BEGIN PRIVATE KEY-----\nMC4C");
  EXPECT_OK(still_serves());
  directory.Write(directory.files().certificate, "");
  EXPECT_OK(still_serves());
  directory.Issue("mnist/ps/1");
  directory.Write(directory.files().authorities, "");
  EXPECT_OK(still_serves());
  // Another task's, and one that has expired: the worker would refuse them.
  directory.Issue("mnist/ps/2");
  EXPECT_OK(still_serves());
  directory.Issue({.alternative_names = "URI:spiffe://a/mnist/ps/1",
                   .not_after = "20200101000000Z"});
  EXPECT_OK(still_serves());
  // Another authority's is of use, and the worker refuses it.
  const CertificateDirectory other("other_again", "another authority");
  other.Issue("mnist/ps/1");
  for (const auto& [from, to] :
       {std::pair(other.files().certificate, directory.files().certificate),
        std::pair(other.files().key, directory.files().key),
        std::pair(other.files().authorities, directory.files().authorities)}) {
    std::filesystem::copy_file(
        from, to, std::filesystem::copy_options::overwrite_existing);
  }
  trust->Reread();
  EXPECT_THAT(CallPs(*trust), StatusIs(absl::StatusCode::kUnauthenticated,
                                       HasSubstr("another authority")));
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
