#include "cluster/trust/peer_identity.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Eq;

const PeerIdentity kPs3 = {.job = "mnist", .role = PeerRole::kPs, .index = 3};

TEST(PeerIdentityTest, UriSaysJobRoleAndIndex) {
  EXPECT_THAT(IdentityInNames({"spiffe://cluster.local/mnist/ps/3"}, {}),
              Eq(kPs3));
  EXPECT_THAT(IdentityInNames({IdentityUri(kPs3, "parasol")}, {}), Eq(kPs3));
}

TEST(PeerIdentityTest, FirstLabelOfADnsNameSaysJobRoleAndIndex) {
  for (const std::string name :
       {"mnist-ps-3", "mnist-ps-3.mnist.team.svc.cluster.local",
        "MNIST-ps-0-3.mnist"}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(IdentityInNames({}, {name}), Eq(kPs3));
  }
  EXPECT_THAT(
      IdentityInNames({}, {"a-ps-1-worker-2.b"}),
      Eq(PeerIdentity{.job = "a-ps-1", .role = PeerRole::kWorker, .index = 2}));
}

TEST(PeerIdentityTest, MasterIsTheChief) {
  EXPECT_THAT(IdentityInNames({}, {"mnist-master-0"}),
              Eq(PeerIdentity{.job = "mnist", .role = PeerRole::kChief}));
}

TEST(PeerIdentityTest, NamesOfAnotherFormSayNothing) {
  const std::string uris[] = {"",
                              "spiffe://",
                              "spiffe:///mnist/ps/3",
                              "spiffe://a/mnist/ps",
                              "spiffe://a/mnist/ps/",
                              "spiffe://a//ps/3",
                              "spiffe://a/mnist/ps/3/4",
                              "spiffe://a/mnist/ps/-3",
                              "spiffe://a/mnist/ps/03",
                              "spiffe://a/mnist/ps/ 3",
                              "spiffe://a/mnist/ps/99999999999",
                              "spiffe://a/mnist/unknown/0",
                              "spiffe://a/ns/team/sa/parasol",
                              "https://a/mnist/ps/3"};
  for (const std::string& uri : uris) {
    SCOPED_TRACE(uri);
    EXPECT_EQ(IdentityInNames({uri}, {}), std::nullopt);
  }
  for (const std::string name : {"", "ps-3", "-ps-3", "mnist-ps", "mnist-ps-",
                                 "mnist-3", "localhost", "mnist.ps-3"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(IdentityInNames({}, {name}), std::nullopt);
  }
}

TEST(PeerIdentityTest, TwoIdentitiesAreNone) {
  EXPECT_EQ(
      IdentityInNames({"spiffe://a/mnist/ps/3", "spiffe://a/mnist/ps/4"}, {}),
      std::nullopt);
  EXPECT_EQ(IdentityInNames({}, {"mnist-ps-3", "mnist-ps-4"}), std::nullopt);
  EXPECT_THAT(IdentityInNames({}, {"mnist-ps-3", "mnist-ps-3.mnist", "mnist"}),
              Eq(kPs3));
}

TEST(PeerIdentityTest, UriGoesBeforeDnsNames) {
  EXPECT_THAT(IdentityInNames({"spiffe://a/mnist/ps/3"}, {"other-chief-0"}),
              Eq(kPs3));
}

}  // namespace
}  // namespace parasol
