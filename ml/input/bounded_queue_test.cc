#include "ml/input/bounded_queue.h"

#include <memory>
#include <optional>
#include <thread>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(BoundedQueueTest, ElementsComeOutInOrder) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), 2);
}

TEST(BoundedQueueTest, ClosedQueueGivesWhatItHasAndThenNothing) {
  BoundedQueue<int> queue(2);
  queue.Push(1);
  queue.Close();
  queue.Close();
  EXPECT_FALSE(queue.Push(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueueTest, ThreadsHandElementsOverOneByOne) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  std::thread producer([&queue] {
    for (int i = 0; i < 1000; ++i) queue.Push(std::make_unique<int>(i));
    queue.Close();
  });
  int expected = 0;
  while (const auto element = queue.Pop()) EXPECT_EQ(**element, expected++);
  EXPECT_EQ(expected, 1000);
  producer.join();
}

TEST(BoundedQueueTest, CloseEndsAWaitForRoom) {
  BoundedQueue<int> queue(1);
  queue.Push(0);
  std::thread producer([&queue] { EXPECT_FALSE(queue.Push(1)); });
  queue.Close();
  producer.join();
}

TEST(BoundedQueueTest, CloseEndsAWaitForAnElement) {
  BoundedQueue<int> queue(1);
  std::thread consumer([&queue] { EXPECT_EQ(queue.Pop(), std::nullopt); });
  queue.Close();
  consumer.join();
}

}  // namespace
}  // namespace parasol
