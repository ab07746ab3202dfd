#include "chief/port_probe.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

// A listening socket on loopback.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_.get(), generic, size), 0);
    EXPECT_EQ(listen(socket_.get(), 8), 0);
    EXPECT_EQ(getsockname(socket_.get(), generic, &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  const std::string& address() const { return address_; }
  Descriptor Accept() {
    return Descriptor(accept(socket_.get(), nullptr, nullptr));
  }

 private:
  const Descriptor socket_;
  std::string address_;
};

TEST(PortProbeTest, NobodyIsWhereNobodyListens) {
  std::string address;
  {
    const Listener gone;
    address = gone.address();
  }
  EXPECT_TRUE(IsNobodyAt(address));
}

TEST(PortProbeTest, OneThatStandsStillIsThere) {
  const Listener silent;
  EXPECT_FALSE(IsNobodyAt(silent.address()));
}

TEST(PortProbeTest, OneThatSpeaksIsThere) {
  Listener listener;
  std::thread speaks([&listener] {
    const Descriptor taken = listener.Accept();
    EXPECT_EQ(send(taken.get(), "x", 1, 0), 1);
    char end;
    EXPECT_EQ(recv(taken.get(), &end, 1, 0), 0);
  });
  EXPECT_FALSE(IsNobodyAt(listener.address()));
  speaks.join();
}

TEST(PortProbeTest, AProxyThatIsRefusedIsNobody) {
  Listener proxy;
  std::thread refuses([&proxy] { proxy.Accept(); });
  EXPECT_TRUE(IsNobodyAt(proxy.address()));
  refuses.join();
}

TEST(PortProbeTest, OfNoAddressNothingIsKnown) {
  EXPECT_FALSE(IsNobodyAt(""));
  EXPECT_FALSE(IsNobodyAt("no port"));
  EXPECT_FALSE(IsNobodyAt("host.that.is.not.there.invalid:1"));
}

}  // namespace
}  // namespace parasol
