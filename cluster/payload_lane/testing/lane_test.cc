#include "cluster/payload_lane/testing/lane_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <thread>

#include "base/status_matchers.h"
#include "grpcpp/support/slice.h"

namespace parasol {

grpc::ByteBuffer BufferOf(const std::string& bytes, size_t pieces) {
  std::vector<grpc::Slice> slices;
  const size_t size = bytes.size() / pieces + 1;
  for (size_t at = 0; at < bytes.size(); at += size) {
    slices.emplace_back(bytes.substr(at, size));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

LaneEnd::~LaneEnd() {
  if (lane_ != nullptr) Close();
}

void LaneEnd::Open(LaneSocket socket) {
  const auto shared = std::make_shared<LaneSocket>(std::move(socket));
  AtLoop([this, shared] {
    lane_ = PayloadLane::Make(std::move(*shared), loop_, *this);
    lane_->Read();
  });
}

absl::Status LaneEnd::Write(const grpc::ByteBuffer& message) {
  BeginWrite(message);
  return AwaitWrite();
}

void LaneEnd::BeginWrite(const grpc::ByteBuffer& message) {
  BeginWrite(std::vector<grpc::ByteBuffer>{message});
}

void LaneEnd::BeginWrite(const std::vector<grpc::ByteBuffer>& messages) {
  {
    absl::MutexLock lock(&mu_);
    written_.reset();
  }
  if (lane_->Write(messages)) OnPayloadWritten(absl::OkStatus());
}

absl::Status LaneEnd::AwaitWrite() {
  absl::MutexLock lock(&mu_);
  const auto is_written = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return written_.has_value();
  };
  mu_.Await(absl::Condition(&is_written));
  return *written_;
}

absl::StatusOr<std::string> LaneEnd::Read() {
  absl::MutexLock lock(&mu_);
  const auto has_read = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !read_.empty();
  };
  mu_.Await(absl::Condition(&has_read));
  absl::StatusOr<std::string> read = std::move(read_.front());
  read_.pop_front();
  return read;
}

void LaneEnd::Close() {
  AtLoop([this] { lane_->Close(); });
}

void LaneEnd::Linger() {
  AtLoop([this] { lane_->Linger(absl::Seconds(60)); });
}

void LaneEnd::ReceiveAhead(const std::vector<std::function<void()>>& steps) {
  AtLoop([&] {
    for (const auto& step : steps) {
      step();
      std::thread([this] { lane_->ReceiveAhead(); }).join();
    }
  });
}

void LaneEnd::OnPayloadRead(const absl::Status& status,
                            grpc::ByteBuffer message) {
  if (status.ok()) lane_->Read();
  if (!status.ok() && closes_on_error_ && !is_gone_) {
    lane_->Close();
    is_gone_ = true;
  }
  absl::MutexLock lock(&mu_);
  if (status.ok()) {
    read_.push_back(BytesOf(message));
  } else {
    read_.push_back(status);
  }
}

void LaneEnd::OnPayloadWritten(const absl::Status& status) {
  EXPECT_FALSE(is_gone_) << "called after Close()";
  absl::MutexLock lock(&mu_);
  EXPECT_FALSE(written_.has_value()) << "completed twice";
  written_ = status;
}

void LaneEnd::AtLoop(const std::function<void()>& work) {
  absl::Notification done;
  loop_.Post([&] {
    work();
    done.Notify();
  });
  done.WaitForNotification();
}

LaneTest::LaneTest(std::shared_ptr<const Trust> trust)
    : host_(PayloadHost::Start("127.0.0.1", 0, /*threads=*/1, INT64_MAX,
                               std::move(trust))
                .value()),
      host_loop_(*host_->NextLoop()) {}

PayloadOffer LaneTest::Expect(Taken& taken) {
  return host_->Expect([&taken](absl::StatusOr<Descriptor> socket) {
    taken.Set(std::move(socket));
  });
}

void LaneTest::Connect(const PayloadOffer& offer, Taken& connected,
                       const std::string& peer) {
  loop_.Post([this, offer, peer, &connected] {
    connection_ = PayloadConnection::Start(
        peer, offer, loop_, [&connected](absl::StatusOr<Descriptor> socket) {
          connected.Set(std::move(socket));
        });
  });
}

void LaneTest::OpenEnds() {
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  worker_.Open(*std::move(connected.Get()));
  ps_.Open(*std::move(taken.Get()));
}

Descriptor LaneTest::ConnectStranger() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(host_->port());
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address),
                    sizeof(address)),
            0);
  return socket;
}

bool LaneTest::IsClosed(const Descriptor& socket) {
  char byte;
  return recv(socket.get(), &byte, 1, 0) <= 0;
}

}  // namespace parasol
