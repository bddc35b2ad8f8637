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
    EXPECT_TRUE(worker.HasRoom());
    std::promise<void> last;
    EXPECT_TRUE(worker.Do([&] { last.set_value(); }));
    EXPECT_FALSE(worker.HasRoom());
    EXPECT_FALSE(worker.Do([&] { order += 'x'; }));
    go.set_value();
    last.get_future().wait();
  }
  EXPECT_EQ(order, "ab");
}

}  // namespace
}  // namespace muster::api
