#include "base/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The whole answer to GET /metrics, headers included.
std::string Scrape(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
      0) {
    const std::string request =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
        "Connection: close\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
      answer.append(buffer, n);
    }
  }
  close(fd);
  return answer;
}

TEST(MetricsTest, TextShowsHelpTypeLabelsAndValue) {
  MetricsRegistry registry;
  Counter pushes = registry.AddCounter("parasol_ps_pushes_total",
                                       "Pushes applied.", {{"kind", "dense"}});
  pushes.Add();
  pushes.Add(2);
  EXPECT_EQ(pushes.value(), 3);
  EXPECT_EQ(registry.Text(),
            "# HELP parasol_ps_pushes_total Pushes applied.\n"
            "# TYPE parasol_ps_pushes_total counter\n"
            "parasol_ps_pushes_total{kind=\"dense\"} 3\n");
}

TEST(MetricsTest, SameNameAndLabelsGiveTheSameMetric) {
  MetricsRegistry registry;
  Gauge first = registry.AddGauge("parasol_chief_tasks", "Tasks alive.");
  Gauge second = registry.AddGauge("parasol_chief_tasks", "Tasks alive.");
  first.Set(4);
  second.Add(-1);
  EXPECT_EQ(first.value(), 3);
}

TEST(MetricsTest, HistogramCountsIntoCumulativeBuckets) {
  MetricsRegistry registry;
  Histogram seconds = registry.AddHistogram("parasol_worker_step_seconds",
                                            "Time of a step.", {0.1, 1});
  seconds.Observe(0.05);
  seconds.Observe(0.5);
  seconds.Observe(5);
  EXPECT_THAT(
      registry.Text(),
      AllOf(HasSubstr("parasol_worker_step_seconds_bucket{le=\"0.1\"} 1\n"),
            HasSubstr("parasol_worker_step_seconds_bucket{le=\"1\"} 2\n"),
            HasSubstr("parasol_worker_step_seconds_bucket{le=\"+Inf\"} 3\n"),
            HasSubstr("parasol_worker_step_seconds_count 3\n")));
}

TEST(MetricsDeathTest, NameOfAnotherKindAborts) {
  MetricsRegistry registry;
  registry.AddGauge("parasol_ps_parts", "Parts held.");
  EXPECT_DEATH(registry.AddCounter("parasol_ps_parts", "Parts held."),
               "metric parasol_ps_parts");
}

TEST(MetricsServerTest, ServesTheRegistryAndTheProcess) {
  MetricsRegistry registry;
  registry.AddGauge("parasol_ps_parts", "Parts held.").Set(7);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MetricsServer> server,
                       MetricsServer::Start("127.0.0.1:0", registry));
  EXPECT_THAT(
      Scrape(server->port()),
      AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("\nparasol_ps_parts 7\n"),
            HasSubstr("\nparasol_build_info{version=\"0.1.0\","),
            HasSubstr("\nprocess_cpu_seconds_total "),
            HasSubstr("\nprocess_resident_memory_bytes ")));
}

TEST(MetricsServerTest, AddressThatIsNoneIsNamed) {
  MetricsRegistry registry;
  for (const std::string address : {"", "9090", "host:", "host:70000"}) {
    EXPECT_THAT(MetricsServer::Start(address, registry),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("\"", address, "\""))));
  }
}

TEST(MetricsServerTest, TakenPortIsNamed) {
  MetricsRegistry registry;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MetricsServer> server,
                       MetricsServer::Start("127.0.0.1:0", registry));
  const std::string address = absl::StrCat("127.0.0.1:", server->port());
  EXPECT_THAT(MetricsServer::Start(address, registry),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(address)));
}

}  // namespace
}  // namespace parasol
