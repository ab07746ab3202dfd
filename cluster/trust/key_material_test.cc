#include "cluster/trust/key_material.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "cluster/trust/certificate_issuer.h"
#include "cluster/trust/job_token.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::Eq;
using testing::HasSubstr;
using testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1800000000);  // 2027-01-15
constexpr char kPs1[] = "URI:spiffe://cluster.local/mnist/ps/1";

JobToken TokenOf(const std::string& text) {
  return JobToken::Parse(absl::StrCat("a token for tests: ", text)).value();
}

CertificateIssuer Issuer(uint8_t seed = 1) {
  return CertificateIssuer(DerivedKey{seed}, "test authority");
}

absl::StatusOr<PeerIdentity> Look(const KeyMaterial& own,
                                  const KeyMaterial& peer,
                                  PeerSide side = PeerSide::kServer) {
  return Authorities::Parse(own.authorities)
      .value()
      ->Verify(peer.certificates, side, kNow);
}

TEST(IssueByTokenTest, ProcessesOfOneTokenTrustEachOther) {
  const KeyMaterial chief =
      IssueByToken(TokenOf("a"), PeerRole::kChief, /*index=*/0);
  const KeyMaterial worker =
      IssueByToken(TokenOf("a"), PeerRole::kWorker, /*index=*/3);
  EXPECT_EQ(chief.authorities, worker.authorities);
  for (const PeerSide side : {PeerSide::kClient, PeerSide::kServer}) {
    EXPECT_THAT(Look(chief, worker, side),
                IsOkAndHolds(Eq(PeerIdentity{.job = TokenOf("a").JobName(),
                                             .role = PeerRole::kWorker,
                                             .index = 3})));
  }
}

TEST(IssueByTokenTest, ProcessesOfAnotherTokenAreRefused) {
  EXPECT_THAT(Look(IssueByToken(TokenOf("a"), PeerRole::kChief, 0),
                   IssueByToken(TokenOf("b"), PeerRole::kWorker, 3))
                  .status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("another authority")));
}

TEST(IssueByTokenTest, NoKeyIsUsedTwice) {
  EXPECT_NE(IssueByToken(TokenOf("a"), PeerRole::kPs, 0).private_key,
            IssueByToken(TokenOf("a"), PeerRole::kPs, 0).private_key);
}

TEST(AuthoritiesTest, AnAuthorityOfTheSameNameIsAnotherOne) {
  EXPECT_THAT(Look(Issuer(1).Issue({.alternative_names = kPs1}),
                   Issuer(2).Issue({.alternative_names = kPs1}))
                  .status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("another authority")));
}

TEST(AuthoritiesTest, OneOfSeveralAuthoritiesSuffices) {
  KeyMaterial own = Issuer(1).Issue({.alternative_names = kPs1});
  const KeyMaterial peer = Issuer(2).Issue({.alternative_names = kPs1});
  own.authorities += peer.authorities;
  EXPECT_OK(Look(own, peer).status());
}

TEST(AuthoritiesTest, FaultsOfACertificateAreNamed) {
  struct Case {
    CertificateIssuer::Subject subject;
    std::string fault;
  };
  const Case cases[] = {
      {{.alternative_names = kPs1, .not_after = "20260101000000Z"},
       "expired at Jan  1 00:00:00 2026"},
      {{.alternative_names = kPs1, .not_before = "20280101000000Z"},
       "is not valid before Jan  1 00:00:00 2028"},
      {{.alternative_names = "DNS:example.com"}, "says no task"},
      {{}, "says no task"},
      {{.alternative_names = kPs1, .extended_key_usage = "clientAuth"},
       "unsuitable certificate purpose"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.fault);
    const KeyMaterial peer = Issuer().Issue(c.subject);
    EXPECT_THAT(
        Look(peer, peer).status(),
        StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr(c.fault)));
  }
}

TEST(AuthoritiesTest, WhoIsRefusedIsNamedAsItsCertificateSays) {
  const auto look = [](const std::string& names) {
    return std::string(Look(Issuer(1).Issue({.alternative_names = kPs1}),
                            Issuer(2).Issue({.alternative_names = names}))
                           .status()
                           .message());
  };
  EXPECT_THAT(look("URI:spiffe://a/other/worker/3"),
              HasSubstr("another authority"));
  EXPECT_THAT(look("URI:spiffe://a/other/worker/3"),
              HasSubstr("(it says worker/3 of other)"));
  EXPECT_THAT(look("DNS:example.com"), HasSubstr("(it says no task)"));
  EXPECT_THAT(look("URI:spiffe://a/\x1b[2J/worker/3"), Not(HasSubstr("\x1b")));
}

// A task's certificate issues no other one.
TEST(AuthoritiesTest, CertificateOfATaskIsNoAuthority) {
  const KeyMaterial own = Issuer().Issue({.alternative_names = kPs1});
  KeyMaterial peer = Issuer(2).Issue({.alternative_names = kPs1});
  peer.certificates += own.certificates;
  EXPECT_THAT(Look(own, peer).status(),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST(AuthoritiesTest, BytesThatAreNoCertificateAreRefused) {
  const KeyMaterial own = Issuer().Issue({.alternative_names = kPs1});
  const auto authorities = Authorities::Parse(own.authorities).value();
  std::string damaged = own.certificates;
  damaged[damaged.size() / 2] = '!';
  for (const std::string& bytes :
       {std::string(), std::string("\0\xff", 2), own.private_key, damaged,
        own.certificates.substr(0, own.certificates.size() / 2)}) {
    EXPECT_THAT(authorities->Verify(bytes, PeerSide::kServer, kNow).status(),
                StatusIs(absl::StatusCode::kUnauthenticated));
    EXPECT_THAT(Authorities::Parse(bytes).status(),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(IdentityOfTest, IdentityIsThatOfTheCertificate) {
  EXPECT_THAT(IdentityOf(Issuer().Issue({.alternative_names = kPs1}), kNow),
              IsOkAndHolds(Eq(PeerIdentity{
                  .job = "mnist", .role = PeerRole::kPs, .index = 1})));
}

TEST(IdentityOfTest, MaterialThatPeersWouldRefuseIsNone) {
  const KeyMaterial good = Issuer().Issue({.alternative_names = kPs1});
  const KeyMaterial other = Issuer(2).Issue({.alternative_names = kPs1});
  const KeyMaterial expired = Issuer().Issue(
      {.alternative_names = kPs1, .not_after = "20260101000000Z"});
  struct Case {
    KeyMaterial material;
    std::string fault;
  };
  const Case cases[] = {
      {{"", good.private_key, good.authorities}, "the certificate's file"},
      {{good.certificates, "", good.authorities}, "the key's file"},
      {{good.certificates, good.private_key, ""}, "the authorities' file"},
      {{good.certificates, other.private_key, good.authorities},
       "the key is not the certificate's"},
      {{good.certificates, good.private_key, other.authorities},
       "another authority"},
      {expired, "the certificate expired at"}};
  for (const Case& c : cases) {
    EXPECT_THAT(
        IdentityOf(c.material, kNow).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.fault)));
  }
}

}  // namespace
}  // namespace parasol
