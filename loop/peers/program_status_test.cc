#include "loop/peers/program_status.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/rpc/status.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST(ProgramStatusServerTest, AnswersAsAChief) {
  const ProgramStatus status;
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ProgramStatusServer::Start("127.0.0.1:0", status, /*trust=*/nullptr));
  const auto stub = wire::ChiefService::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", server->port()),
                          grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  wire::JobStatus answer;
  ASSERT_OK(FromGrpcStatus(stub->GetStatus(&context, {}, &answer), "program"));
  EXPECT_EQ(answer.phase(), wire::LOADING);
  EXPECT_THAT(answer.trouble(), HasSubstr("have not met"));
}

TEST(ProgramStatusServerTest, AnAddressThatCantBeListenedOnIsNamed) {
  const ProgramStatus status;
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ProgramStatusServer::Start("127.0.0.1:0", status, /*trust=*/nullptr));
  const std::string taken = absl::StrCat("127.0.0.1:", server->port());
  EXPECT_THAT(
      ProgramStatusServer::Start(taken, status, /*trust=*/nullptr).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(taken)));
}

}  // namespace
}  // namespace parasol
