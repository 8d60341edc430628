//! Python arithmetic on integers.

/// The result of an operator on two integers.
pub fn whole(left: &str, sign: &str, right: &str) -> Option<String> {
    let (left, right) = (left.parse::<i64>().ok()?, right.parse::<i64>().ok()?);
    let result = match sign {
        "*" => left.checked_mul(right),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "//" => left.checked_div_euclid(right),
        "**" => left.checked_pow(u32::try_from(right).ok()?),
        _ => None,
    };
    result.map(|result| result.to_string())
}
