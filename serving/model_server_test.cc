#include "serving/model_server.h"

#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "serving/testing/http_client.h"

namespace parasol {
namespace {

TEST(ModelServerTest, AStopDoesNotWaitForALoad) {
  const std::string directory = EmptyTestDirectory();
  ASSERT_OK(ModelCheckpoint{.step = 20}.Write(directory));
  absl::Notification is_loading;
  absl::Notification can_end;
  ModelServer::Options options = {.path = directory};
  options.http = {.host = "127.0.0.1", .threads = 4};
  options.grpc_port = 0;
  options.load = [&](const std::string&) {
    is_loading.Notify();
    can_end.WaitForNotification();
    return absl::DataLossError("damaged");
  };
  MetricsRegistry registry;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ModelServer> server,
                       ModelServer::Start(options, Clock::Real(), registry));
  std::thread run([&] { EXPECT_OK(server->Run()); });
  is_loading.WaitForNotification();
  EXPECT_EQ(HttpClient(server->http_port()).Get("/healthz").status, 503);
  server->Stop();
  // All is answered, and nothing listens any more.
  const absl::Time limit = Clock::Real().Now() + absl::Seconds(30);
  int status = 503;
  while (status != 0 && Clock::Real().Now() < limit) {
    status = HttpClient(server->http_port()).Get("/healthz").status;
  }
  EXPECT_EQ(status, 0);
  can_end.Notify();
  run.join();
}

}  // namespace
}  // namespace parasol
