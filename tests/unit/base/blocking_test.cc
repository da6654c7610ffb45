#include "base/blocking.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir {
namespace {

TEST(Blocking, IsAllowedWhereNothingSaysOtherwise) { MayBlock("a test"); }

TEST(BlockingDeathTest, TheMarkIsOfOneThreadAndEndsWithItsObject) {
  {
    const NeverBlocks outer;
    { const NeverBlocks inner; }
    EXPECT_DEATH(MayBlock("the outer one still lives"), "the outer one still lives");
    std::thread([] { MayBlock("another thread"); }).join();
  }
  MayBlock("none lives any more");
}

TEST(BlockingDeathTest, EndsTheProgramOnAMarkedThread) {
  EXPECT_DEATH(
      {
        const NeverBlocks mark;
        MayBlock("reading a file");
      },
      "blocking call on a reactor's thread: reading a file");
}

}  // namespace
}  // namespace weir
