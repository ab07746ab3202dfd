#include "cluster/rpc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr size_t kSize = 64 << 10;

class SharedMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::shared_ptr<SharedMemory>> memory =
        SharedMemory::Create(kSize);
    ASSERT_OK(memory);
    memory_ = *std::move(memory);
  }

  // The offer with another word at `index`: 0 the machine, 1 the process, 2 its
  // descriptor, 3 the secret.
  std::string OfferWith(size_t index, const std::string& word) const {
    std::vector<std::string> words = absl::StrSplit(memory_->offer(), ' ');
    words.at(index) = word;
    return absl::StrJoin(words, " ");
  }

  std::shared_ptr<SharedMemory> memory_;
};

TEST_F(SharedMemoryTest, BothSeeWhatEitherWrites) {
  const auto other = SharedMemory::Open(memory_->offer(), kSize);
  ASSERT_OK(other);
  EXPECT_NE((*other)->data(), memory_->data());
  EXPECT_EQ((*other)->size(), kSize);
  EXPECT_EQ((*other)->data()[kSize - 1], std::byte{0});
  memory_->data()[kSize - 1] = std::byte{7};
  (*other)->data()[0] = std::byte{8};
  EXPECT_EQ((*other)->data()[kSize - 1], std::byte{7});
  EXPECT_EQ(memory_->data()[0], std::byte{8});
}

TEST_F(SharedMemoryTest, AnotherProcessSeesIt) {
  const std::string offer = memory_->offer();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto opened = SharedMemory::Open(offer, kSize);
    if (opened.ok()) (*opened)->data()[100] = std::byte{42};
    _exit(opened.ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory_->data()[100], std::byte{42});
}

TEST_F(SharedMemoryTest, ItLivesUntilTheLastHasLetGo) {
  auto other = SharedMemory::Open(memory_->offer(), kSize);
  ASSERT_OK(other);
  memory_->data()[5] = std::byte{9};
  memory_.reset();
  EXPECT_EQ((*other)->data()[5], std::byte{9});
}

TEST_F(SharedMemoryTest, AnOfferEnds) {
  memory_->Close();
  EXPECT_THAT(SharedMemory::Open(memory_->offer(), kSize),
              StatusIs(absl::StatusCode::kUnavailable));
  memory_->data()[0] = std::byte{1};
}

TEST_F(SharedMemoryTest, AnotherMachinesOfferIsNotFound) {
  EXPECT_THAT(SharedMemory::Open(OfferWith(0, "b/pid:[1]"), kSize),
              StatusIs(absl::StatusCode::kNotFound,
                       testing::HasSubstr("runs on another machine")));
}

TEST_F(SharedMemoryTest, WhatIsNoOfferIsInvalid) {
  for (const std::string& offer :
       {std::string(), std::string("x"), std::string("a b c d"),
        std::string(1 << 16, ' '), OfferWith(1, "-1"), OfferWith(1, "0"),
        OfferWith(2, "-1"), OfferWith(2, "99999999999999999999"),
        OfferWith(3, "short"), OfferWith(3, std::string(32, 'x')),
        memory_->offer() + " more"}) {
    EXPECT_THAT(SharedMemory::Open(offer, kSize),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << offer.substr(0, 100);
  }
}

TEST_F(SharedMemoryTest, OnlyTheOffersSecretOpensIt) {
  EXPECT_THAT(SharedMemory::Open(OfferWith(3, std::string(32, 'a')), kSize),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SharedMemoryTest, AnotherSizeIsInvalid) {
  EXPECT_THAT(SharedMemory::Open(memory_->offer(), 2 * kSize),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SharedMemoryTest, AProcessThatIsGoneIsUnavailable) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_THAT(SharedMemory::Open(OfferWith(1, absl::StrCat(child)), kSize),
              StatusIs(absl::StatusCode::kUnavailable));
}

// Reading what its owner cuts off would end the process.
TEST_F(SharedMemoryTest, MemoryThatCanShrinkIsInvalid) {
  const int loose =
      memfd_create("parasol-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(loose, 0);
  ASSERT_EQ(ftruncate(loose, 4096 + kSize), 0);
  EXPECT_THAT(SharedMemory::Open(OfferWith(2, absl::StrCat(loose)), kSize),
              StatusIs(absl::StatusCode::kInvalidArgument));
  close(loose);
}

TEST_F(SharedMemoryTest, PagesCanBeTakenAhead) {
  EXPECT_TRUE(memory_->Populate(4096, 2 * 4096));
  EXPECT_EQ(memory_->data()[4096], std::byte{0});
}

TEST_F(SharedMemoryTest, AFileSizeLimitIsUnavailableInsteadOfTheEnd) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto refused = SharedMemory::Create(kSize);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(SharedMemoryTest, OtherFilesAreNotOpened) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int device = open("/dev/zero", O_RDWR);
  for (const int descriptor : {ends[0], ends[1], device}) {
    EXPECT_THAT(
        SharedMemory::Open(OfferWith(2, absl::StrCat(descriptor)), kSize),
        StatusIs(absl::StatusCode::kInvalidArgument));
    close(descriptor);
  }
}

}  // namespace
}  // namespace parasol
