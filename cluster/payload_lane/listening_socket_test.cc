#include "cluster/payload_lane/listening_socket.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(ListeningSocketTest, APortThatIsTakenComesWithWhatToDo) {
  ASSERT_OK_AND_ASSIGN(const Descriptor first,
                       ListenOn("127.0.0.1", 0, "visits"));
  const int port = PortOf(first);
  EXPECT_THAT(
      ListenOn("127.0.0.1", port, "visits"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               absl::StrCat("can't take visits on 127.0.0.1:", port,
                            ": Address already in use; stop the process that "
                            "has it, such as another one of this task, or "
                            "choose another port")));
}

}  // namespace
}  // namespace parasol
