#include "cluster/rights/rights.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"
#include "proto/tensorflow_serving.pb.h"

namespace parasol {
namespace {

using ::google::protobuf::FileDescriptor;
using ::google::protobuf::ServiceDescriptor;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Method kAll[] = {
    Method::kRegister,   Method::kHeartbeat,       Method::kGetPlacement,
    Method::kClaimSteps, Method::kReportFailure,   Method::kLeave,
    Method::kGetStatus,  Method::kInspect,         Method::kLoad,
    Method::kSnapshot,   Method::kPrepareSnapshot, Method::kExchange,
    Method::kFollow,     Method::kTakeStandby};

// The full names of the methods of all services that have a .proto file here.
std::vector<std::string> AllMethods() {
  std::vector<std::string> names;
  for (const FileDescriptor* file :
       {wire::RegisterRequest::descriptor()->file(),
        wire::LoadRequest::descriptor()->file(),
        tensorflow::serving::PredictRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      const ServiceDescriptor* const service = file->service(i);
      for (int j = 0; j < service->method_count(); ++j) {
        names.push_back(service->method(j)->full_name());
      }
    }
  }
  return names;
}

PeerIdentity Peer(PeerRole role, int index = 0) {
  return {.job = "mnist", .role = role, .index = index};
}

wire::Task TaskOf(const std::string& role, int index) {
  wire::Task task;
  task.set_role(role);
  task.set_index(index);
  return task;
}

std::vector<PeerIdentity> Everybody() {
  return {Peer(PeerRole::kUnknown),   Peer(PeerRole::kChief),
          Peer(PeerRole::kPs, 0),     Peer(PeerRole::kPs, 1),
          Peer(PeerRole::kWorker, 0), Peer(PeerRole::kWorker, 1),
          Peer(PeerRole::kEvaluator), Peer(PeerRole::kOperator)};
}

// The peers that may call the method, and as which tasks: "worker/1 as ps/1".
std::set<std::string> Allowed(const Rights& rights, Method method) {
  std::set<std::string> allowed;
  for (const PeerIdentity& peer : Everybody()) {
    for (const auto& [role, index] :
         std::vector<std::pair<std::string, int>>{{"chief", 0},
                                                  {"ps", 0},
                                                  {"ps", 1},
                                                  {"worker", 0},
                                                  {"worker", 1},
                                                  {"evaluator", 0},
                                                  {"operator", 0},
                                                  {"unknown", 0},
                                                  {"", 0}}) {
      if (!rights.Check(method, peer, TaskOf(role, index)).ok()) continue;
      allowed.insert(absl::StrCat(PeerRoleName(peer.role), "/", peer.index,
                                  " as ", role, "/", index));
    }
  }
  return allowed;
}

TEST(RightsTest, EveryMethodOfEveryServiceHasARow) {
  const std::vector<std::string> methods = AllMethods();
  EXPECT_GT(methods.size(), std::size(kAll));
  for (const std::string& method : methods) {
    EXPECT_NE(FindRights(method), nullptr)
        << method << " has no row in kTable of rights.cc: who may call it?";
  }
  EXPECT_NE(FindRights("grpc.health.v1.Health.Check"), nullptr);
}

TEST(RightsTest, EveryRowIsThatOfAMethod) {
  const std::vector<std::string> methods = AllMethods();
  for (const RightsRow& row : RightsTable()) {
    if (absl::StartsWith(row.name, "grpc.health.v1.Health.")) continue;
    const bool is_one = std::any_of(
        methods.begin(), methods.end(),
        [&](const std::string& name) { return FindRights(name) == &row; });
    EXPECT_TRUE(is_one) << row.name;
  }
}

TEST(RightsTest, NobodyMayCallWhatHasNoRow) {
  EXPECT_EQ(FindRights("parasol.wire.ChiefService.Stop"), nullptr);
  EXPECT_EQ(FindRights("parasol.wire.ChiefService."), nullptr);
  EXPECT_EQ(FindRights(""), nullptr);
}

TEST(RightsTest, OnlyServicesMeantForOthersAreOpen) {
  for (const RightsRow& row : RightsTable()) {
    const bool is_ours = absl::StartsWith(row.name, "parasol.");
    EXPECT_EQ(row.caller == Caller::kAnybody, !is_ours) << row.name;
  }
}

TEST(RightsTest, ATaskRegistersAndReportsAsItselfOnly) {
  const std::set<std::string> themselves = {
      "ps/0 as ps/0", "ps/1 as ps/1", "worker/0 as worker/0",
      "worker/1 as worker/1", "evaluator/0 as evaluator/0"};
  for (const Method method :
       {Method::kRegister, Method::kHeartbeat, Method::kLeave}) {
    EXPECT_EQ(Allowed(Rights(), method), themselves);
  }
}

TEST(RightsTest, WhoActsForALostPsHasItsHostsKeys) {
  wire::Task acting;
  acting.set_role("ps");
  acting.set_index(1);
  acting.set_host_index(0);
  const Rights rights;
  EXPECT_OK(rights.Check(Method::kRegister, PeerIdentity{"a", PeerRole::kPs, 0},
                         acting));
  for (const PeerIdentity& other : {PeerIdentity{"a", PeerRole::kPs, 1},
                                    PeerIdentity{"a", PeerRole::kWorker, 0}}) {
    EXPECT_THAT(rights.Check(Method::kRegister, other, acting),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
}

TEST(RightsTest, OnlyWorkersClaimPullPushAndFailAndForThemselves) {
  const std::set<std::string> workers = {"worker/0 as worker/0",
                                         "worker/1 as worker/1"};
  for (const Method method : {Method::kGetPlacement, Method::kClaimSteps,
                              Method::kReportFailure, Method::kExchange}) {
    EXPECT_EQ(Allowed(Rights(), method), workers);
  }
}

TEST(RightsTest, OnlyTheChiefOrders) {
  for (const Method method :
       {Method::kLoad, Method::kSnapshot, Method::kPrepareSnapshot}) {
    for (const PeerIdentity& peer : Everybody()) {
      EXPECT_EQ(Rights().Check(method, peer).ok(),
                peer.role == PeerRole::kChief)
          << peer.ToString();
      const bool may_without_chief =
          peer.role == PeerRole::kChief || peer == Peer(PeerRole::kWorker, 0);
      EXPECT_EQ(Rights({.worker0_is_chief = true}).Check(method, peer).ok(),
                may_without_chief)
          << peer.ToString();
    }
  }
}

TEST(RightsTest, EveryMemberSeesTheStatus) {
  for (const PeerIdentity& peer : Everybody()) {
    EXPECT_EQ(Rights().Check(Method::kGetStatus, peer).ok(),
              peer.role != PeerRole::kUnknown)
        << peer.ToString();
  }
}

TEST(RightsTest, WorkerZeroIsThePsOfItsVariables) {
  const Rights rights({.state_place = 1});
  for (const Method method :
       {Method::kRegister, Method::kHeartbeat, Method::kLeave}) {
    const std::set<std::string> allowed = Allowed(rights, method);
    EXPECT_TRUE(allowed.contains("worker/0 as ps/1"));
    EXPECT_FALSE(allowed.contains("worker/0 as ps/0"));
    EXPECT_FALSE(allowed.contains("worker/1 as ps/1"));
  }
}

TEST(RightsTest, WhoCanProveNothingIsNotToldApart) {
  for (const Method method : kAll) {
    EXPECT_OK(Rights().Check(method, std::nullopt, TaskOf("worker", 1)));
  }
}

TEST(RightsTest, ARefusalSaysWhoAskedForWhatAndWhoMay) {
  const absl::Status refusal = Rights().Check(
      Method::kRegister, Peer(PeerRole::kWorker, 1), TaskOf("ps", 0));
  EXPECT_EQ(refusal.message(),
            "worker/1 of mnist may not call Register as ps/0: only a ps, "
            "worker or evaluator of the job, as itself may");
}

}  // namespace
}  // namespace parasol
