#include "api/worker.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace muster::api {
namespace {

TEST(Worker, DoesOneAfterTheOtherAndRefusesWhenTooManyWait) {
  std::promise<void> begun, go;
  std::string order;
  {
    Worker worker(2);
    EXPECT_TRUE(worker.Do([&] {
      begun.set_value();
      go.get_future().wait();
      order += 'a';
    }));
    begun.get_future().wait();
    EXPECT_TRUE(worker.Do([&] { order += 'b'; }));
    std::promise<void> last;
    EXPECT_TRUE(worker.Do([&] { last.set_value(); }));
    EXPECT_FALSE(worker.Do([&] { order += 'x'; }));
    go.set_value();
    last.get_future().wait();
  }
  EXPECT_EQ(order, "ab");
}

TEST(Worker, NobodyKeepsOthersOut) {
  std::promise<void> begun, go, done;
  Worker worker(8, 2);
  EXPECT_TRUE(worker.Do(
      [&] {
        begun.set_value();
        go.get_future().wait();
      },
      "ana"));
  begun.get_future().wait();
  EXPECT_TRUE(worker.Do([] {}, "ana"));
  EXPECT_FALSE(worker.Do([] {}, "ana"));  // one is done, one waits
  EXPECT_TRUE(worker.Do([&] { done.set_value(); }, "ben"));
  go.set_value();
  done.get_future().wait();
  std::promise<void> again;
  EXPECT_TRUE(worker.Do([&] { again.set_value(); }, "ana"));
  again.get_future().wait();
}

}  // namespace
}  // namespace muster::api
