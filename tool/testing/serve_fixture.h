#ifndef PARASOL_TOOL_TESTING_SERVE_FIXTURE_H_
#define PARASOL_TOOL_TESTING_SERVE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "serving/testing/http_client.h"
#include "tool/testing/trained_job_fixture.h"

namespace parasol {

// Fixture of tests with a server of predictions as users start it: `parasol
// serve` of the trained job's checkpoints in Path("ckpt").
class ServeFixture : public TrainedJobFixture {
 protected:
  static constexpr char kPredict[] = "/v1/models/ratings:predict";

  // Starts a server in place of the one before, and waits until it listens.
  void Start(const std::vector<std::string>& more = {});
  // Reads the server's log until it has `words`.
  void AwaitLog(const std::string& words);
  // Ends the server as Kubernetes does, and returns its exit code.
  int Terminate();

  // Returns the body that asks for the first `count` examples, or an example
  // that was never trained.
  static std::string RowsOf(int count);
  // Returns the body that asks for the first `count` examples of the job of
  // patterns, with all columns that it reads and the label.
  static std::string RowsOfPatterns(int count);
  // Returns the version that an answer names; -1 if it names none.
  static int64_t VersionOf(const HttpAnswer& answer);

  std::unique_ptr<Subprocess> server_;
  std::string log_;
  int port_ = 0;
  int grpc_port_ = 0;

 private:
  int NumberBehind(const std::string& words) const;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_TESTING_SERVE_FIXTURE_H_
