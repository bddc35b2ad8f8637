#include "api/meter.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

class Silent final : public net::Exchange {
 public:
  void Reply(net::Response) override {}
  void BeginStream(int, std::string, std::vector<net::Header>) override {}
  void SetEndless() override {}
  bool Write(std::string) override { return true; }
  std::size_t Queued() const override { return 0; }
  void Finish() override {}
  void Abort() override {}
  bool gone() const override { return false; }
  bool over() const override { return false; }
  std::shared_ptr<net::WebSocket> Upgrade(net::WebSocketHandlers) override { return nullptr; }
};

net::Response With(int status) {
  net::Response response;
  response.status = status;
  return response;
}

TEST(Meter, CountsTheFirstAnswerOfEachRequestAndItsTime) {
  ManualClock clock;
  auto meter = std::make_shared<Meter>(clock);
  auto exchange = meter->Watch(std::make_shared<Silent>(), "getJob");
  clock.Advance(3'000);
  exchange->Reply(With(404));
  exchange->Reply(With(200));  // ignored by the server as well
  const auto row = meter->Rows().at("getJob");
  EXPECT_EQ(row.requests, 1u);
  EXPECT_EQ(row.answers[4], 1u);
  EXPECT_EQ(row.answers[2], 0u);
  EXPECT_EQ(row.took.count(), 1u);
  EXPECT_DOUBLE_EQ(row.took.sum_s(), 3.0);
}

TEST(Meter, AStreamIsOpenUntilNobodyHoldsIt) {
  ManualClock clock;
  auto meter = std::make_shared<Meter>(clock);
  auto exchange = meter->Watch(std::make_shared<Silent>(), "watchEvents");
  net::Exchange& stream = *exchange;
  stream.BeginStream(200, "text/event-stream");
  EXPECT_EQ(meter->streams(), 1);
  exchange.reset();
  EXPECT_EQ(meter->streams(), 0);
  EXPECT_EQ(meter->Rows().at("watchEvents").answers[2], 1u);
}

TEST(Meter, WhatNobodyAnsweredIsAFaultOfOurs) {
  ManualClock clock;
  auto meter = std::make_shared<Meter>(clock);
  meter->Watch(std::make_shared<Silent>(), "getJob").reset();
  EXPECT_EQ(meter->Rows().at("getJob").answers[5], 1u);
}

TEST(Meter, AnUpgradeThatWasRefusedIsStillToBeAnswered) {
  ManualClock clock;
  auto meter = std::make_shared<Meter>(clock);
  auto exchange = meter->Watch(std::make_shared<Silent>(), "execJob");
  EXPECT_EQ(exchange->Upgrade({}), nullptr);
  exchange->Reply(With(400));
  EXPECT_EQ(meter->Rows().at("execJob").answers[4], 1u);
  EXPECT_EQ(meter->sockets(), 0);
}

}  // namespace
}  // namespace muster::api
