//! Amounts divided by rates, and rates by times: the only products of different units.

use super::{Bytes, BytesPerSecond, Flops, FlopsPerSecond, Quantity, Seconds};

impl std::ops::Div<BytesPerSecond> for Bytes {
    type Output = Seconds;
    fn div(self, rate: BytesPerSecond) -> Seconds {
        Seconds::new(self.number() / rate.get())
    }
}

impl std::ops::Div<FlopsPerSecond> for Flops {
    type Output = Seconds;
    fn div(self, rate: FlopsPerSecond) -> Seconds {
        Seconds::new(self.get() / rate.get())
    }
}

impl std::ops::Div<Seconds> for Flops {
    type Output = FlopsPerSecond;
    fn div(self, time: Seconds) -> FlopsPerSecond {
        FlopsPerSecond::new(self.get() / time.get())
    }
}

impl std::ops::Mul<Seconds> for BytesPerSecond {
    type Output = Bytes;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn mul(self, time: Seconds) -> Bytes {
        // A cast from f64 ends at the greatest u64, as sums and products here do.
        Bytes::new((self.get() * time.get()).max(0.0) as u64)
    }
}
