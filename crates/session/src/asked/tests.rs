use super::*;
use crate::{EXAMPLE, Extent, State};
use shardscope_search::Dimension;

fn asked(topic: Topic) -> Asked {
    let (tokens, days, price, most_nodes) = (None, None, None, None);
    let (prices, vary) = (BTreeMap::new(), Varied::default());
    Asked { topic, trained: None, tokens, days, price, most_nodes, prices, vary }
}

#[test]
fn every_question_ends_with_an_answer_that_opens_as_a_plan() {
    let input = UserInput::from_text(EXAMPLE);
    for topic in Topic::ALL {
        let asked =
            Asked { tokens: Some(1_000_000_000), price: Some(2.0), most_nodes: Some(2), ..asked(topic) };
        let mut asking = Asking::new(&input, &asked).unwrap();
        while asking.step(u64::MAX) {}
        let lines = asking.lines();
        let chosen = lines.iter().find(|line| line.chosen);
        let Some(line) = chosen else {
            panic!("{}: {}", topic.name(), asking.answer());
        };
        let reached = line.reached.as_ref().unwrap();
        let mut changed = asked.changed(&input);
        for (field, value) in &reached.outcome.as_ref().unwrap().changes {
            changed.put((field.name().to_owned(), value.clone()));
        }
        let shown = State::new(changed).shown.unwrap();
        assert_eq!(shown.plan.cluster().gpus(), reached.gpus, "{}", topic.name());
        let (step, found) = (shown.report.time.step.get(), reached.outcome.as_ref().unwrap().step.get());
        assert!((step / found - 1.0).abs() < 1e-9, "{}: {step} and {found}", topic.name());
    }
}

#[test]
fn what_a_question_does_not_take_is_named() {
    for topic in Topic::ALL {
        assert_eq!(asked(topic).checked(), Ok(()));
        let misplaced = |name| Err(AskError::Misplaced { name, topic: topic.name() });
        let price = Asked { price: Some(2.0), ..asked(topic) }.checked();
        let takes = topic == Topic::Cheapest;
        assert_eq!(price, if takes { Ok(()) } else { misplaced("price") }, "{}", topic.name());
        let nodes = Asked { most_nodes: Some(2), ..asked(topic) }.checked();
        let takes = matches!(topic, Topic::Cheapest | Topic::Scaling);
        assert_eq!(nodes, if takes { Ok(()) } else { misplaced("most_nodes") }, "{}", topic.name());
    }
    for days in [0.0, -3.0, f64::NAN, f64::INFINITY] {
        let asked = Asked { days: Some(days), ..asked(Topic::Cheapest) };
        assert_eq!(asked.checked(), Err(AskError::NotPositive("days")), "{days}");
    }
    // Tokens only matter if kinds have prices.
    let tokens = Some(1_000_000_000);
    let kinds = |prices| Asked { tokens, prices, ..asked(Topic::WhichGpu) }.checked();
    assert_eq!(kinds([("H100-SXM".to_owned(), 2.0)].into()), Ok(()));
    assert_eq!(
        kinds(BTreeMap::new()),
        Err(AskError::Misplaced { name: "tokens", topic: Topic::WhichGpu.name() })
    );
    let elsewhere = Asked { prices: [("H100-SXM".to_owned(), 2.0)].into(), ..asked(Topic::Scaling) };
    let misplaced = AskError::Misplaced { name: "prices", topic: Topic::Scaling.name() };
    assert_eq!(elsewhere.checked(), Err(misplaced));
}

#[test]
fn kinds_with_prices_are_compared_by_what_the_tokens_cost() {
    let input = UserInput::from_text(EXAMPLE);
    let vary = Varied::default().with(Dimension::MicroBatch, Extent::Fixed).expect("a dimension");
    let cheapest = |prices: [(&str, f64); 2]| {
        let prices = prices.map(|(name, price)| (name.to_owned(), price)).into();
        let (tokens, vary) = (Some(1_000_000_000), vary.clone());
        let asked = Asked { prices, tokens, vary, ..asked(Topic::WhichGpu) };
        let mut asking = Asking::new(&input, &asked).unwrap();
        while asking.step(u64::MAX) {}
        let lines = asking.lines();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.reached.as_ref().unwrap().cost.is_some()));
        let chosen = lines.iter().find(|line| line.chosen).unwrap().name.clone();
        assert!(asking.answer().contains(&format!("{chosen} cost least")), "{}", asking.answer());
        chosen
    };
    assert_eq!(cheapest([("H100-SXM", 1.0), ("H200-SXM", 100.0)]), "H100-SXM");
    assert_eq!(cheapest([("H100-SXM", 100.0), ("H200-SXM", 1.0)]), "H200-SXM");
}

#[test]
fn what_is_missing_is_asked() {
    let input = UserInput::from_text(EXAMPLE);
    let cheapest = Asking::new(&input, &asked(Topic::Cheapest));
    assert_eq!(cheapest.err(), Some(AskError::Tokens));
    let priced = |name: &str, price| {
        let prices = [(name.to_owned(), price)].into();
        Asking::new(&input, &Asked { prices, tokens: Some(1), ..asked(Topic::WhichGpu) }).err()
    };
    assert_eq!(priced("H100-SXM", 2.0), None);
    assert_eq!(priced("H100-SXM", 0.0), Some(AskError::Price));
    for unknown in ["X10", ""] {
        assert_eq!(priced(unknown, 2.0), Some(AskError::Kind(unknown.to_owned())));
    }
    let empty = Asking::new(&UserInput::from_text(""), &asked(Topic::FewestGpus));
    assert!(matches!(empty.err(), Some(AskError::NoPlan(_))));
}
